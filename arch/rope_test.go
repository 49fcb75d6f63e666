package arch

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// ropeGolden is a case of testdata/gen/rope.py: what transformers computes for a configuration.
type ropeGolden struct {
	Name           string          `json:"name"`
	Config         json.RawMessage `json:"config"`
	HeadDim        int             `json:"head_dim"`
	InvFreq        []float64       `json:"inv_freq"`
	AttentionScale float64         `json:"attention_scale"`
}

func TestFrequenciesEqualTheReference(t *testing.T) {
	data, err := os.ReadFile("testdata/rope.json")
	if err != nil {
		t.Fatal(err)
	}
	var goldens []ropeGolden
	if err := json.Unmarshal(data, &goldens); err != nil {
		t.Fatal(err)
	}
	equal, all := 0, 0
	for _, g := range goldens {
		t.Run(g.Name, func(t *testing.T) {
			m, err := ParseLlama(g.Config)
			if err != nil {
				t.Fatal(err)
			}
			if m.HeadDim != g.HeadDim {
				t.Fatalf("head size %d, want %d", m.HeadDim, g.HeadDim)
			}
			freqs, scale := m.Rope.Frequencies(m.HeadDim)
			if len(freqs) != len(g.InvFreq) {
				t.Fatalf("%d frequencies, want %d", len(freqs), len(g.InvFreq))
			}
			for i, got := range freqs {
				// The reference's vectorised power function is right to one unit in the last place, and the mixing steps
				// of yarn and llama3 carry that on.
				if d := ulps(got, g.InvFreq[i]); d > 3 {
					t.Errorf("pair %d: %v, want %v: %d units in the last place apart", i, got, g.InvFreq[i], d)
				} else if d == 0 {
					equal++
				}
				all++
			}
			if math.Abs(scale-g.AttentionScale) > 1e-15 {
				t.Errorf("attention scale %v, want %v", scale, g.AttentionScale)
			}
		})
	}
	if equal*10 < all*9 {
		t.Errorf("only %d of %d frequencies equal the reference's bit for bit: some step is not rounded as there", equal, all)
	}
}

// ulps is the distance of two positive float32 values in units in the last place.
func ulps(a, b float64) int {
	d := int(math.Float32bits(float32(a))) - int(math.Float32bits(float32(b)))
	return max(d, -d)
}
