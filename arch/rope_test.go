package arch_test

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
)

// ropeGolden is a case of testdata/gen/arch/rope.py: the values that transformers computes for a configuration.
type ropeGolden struct {
	Name           string          `json:"name"`
	Config         json.RawMessage `json:"config"`
	HeadDim        int             `json:"head_dim"` // 0: not a llama configuration
	Length         int             `json:"length"`   // sequence length, 0 = the initial frequencies
	LayerType      string          `json:"layer_type"`
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
			m, err := arch.Detect(g.Config)
			if err != nil {
				t.Fatal(err)
			}
			rope, dim := ropeOf(m, g.LayerType)
			if l, ok := m.(*types.Llama); ok && l.HeadDim != g.HeadDim {
				t.Fatalf("head size %d, want %d", l.HeadDim, g.HeadDim)
			}
			freqs, scale := rope.FrequenciesAt(dim, g.Length)
			if len(freqs) != len(g.InvFreq) {
				t.Fatalf("%d frequencies, want %d", len(freqs), len(g.InvFreq))
			}
			for i, got := range freqs {
				// torch's vectorized power function is accurate to one unit in the last place, and the blending steps of yarn and
				// llama3 propagate that error.
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

// ropeOf returns the rope of a layer type, and its head size.
func ropeOf(m arch.Model, layerType string) (config.Rope, int) {
	switch m := m.(type) {
	case *types.Gemma4:
		if layerType != config.SlidingAttention {
			return m.Rope, m.Layer[len(m.Layer)-1].HeadDim
		}
	case *types.Gemma4Assistant:
		return ropeOf(m.Text, layerType)
	}
	fields := reflect.ValueOf(m).Elem()
	rope := fields.FieldByName("Rope")
	if !rope.IsValid() {
		return config.NoRope, int(fields.FieldByName("HeadDim").Int())
	}
	if own := fields.FieldByName("SlidingRope"); own.IsValid() && layerType == config.SlidingAttention {
		rope = own
	}
	return rope.Interface().(config.Rope), int(fields.FieldByName("HeadDim").Int())
}

// A length-dependent rope reports the length at which it changes.
func TestByLength(t *testing.T) {
	for _, c := range []struct {
		rope  config.Rope
		limit int
		ok    bool
	}{
		{config.Rope{Type: config.RopeDynamic, Theta: 1e4, PartialFactor: 1, Factor: 2, Context: 64}, 64, true},
		{
			config.Rope{
				Type: config.RopeLong, Theta: 1e4, PartialFactor: 1, OriginalMax: 32, ShortFactor: []float64{1, 1},
				LongFactor: []float64{2, 3},
			},
			32, true,
		},
		{config.Rope{Type: config.RopeYarn, Theta: 1e4, PartialFactor: 1, Factor: 2, OriginalMax: 32, BetaFast: 32,
			BetaSlow: 1}, 0, false},
	} {
		limit, ok := c.rope.ByLength()
		if limit != c.limit || ok != c.ok {
			t.Errorf("%s: limit %d, %v", c.rope.Type, limit, ok)
		}
		if !ok {
			limit = 1 << 20
		}
		short, _ := c.rope.Frequencies(4)
		at, _ := c.rope.FrequenciesAt(4, limit)
		beyond, _ := c.rope.FrequenciesAt(4, limit+1)
		if !slices.Equal(short, at) || slices.Equal(short, beyond) == ok {
			t.Errorf("%s: %v, at the limit %v, beyond it %v", c.rope.Type, short, at, beyond)
		}
	}
}

// ulps returns the distance of two positive float32 values in units in the last place.
func ulps(a, b float64) int {
	d := int(math.Float32bits(float32(a))) - int(math.Float32bits(float32(b)))
	return max(d, -d)
}

// A layer type without rope_theta has the base that transformers gives it.
func TestLagunaRopes(t *testing.T) {
	for _, c := range []struct {
		value           string
		full, sliding   float64
		partial, rotary float64
	}{
		{"null", 5e5, 1e4, 0.5, 1},
		{`{"full_attention":{"rope_type":"default"},"sliding_attention":{"partial_rotary_factor":0.5}}`, 1e4, 1e4, 1, 0.5},
		{`{"full_attention":{"rope_theta":7},"sliding_attention":{"rope_theta":9}}`, 7, 9, 1, 1},
	} {
		m := mustDetect(t, string(edited(t, "laguna", "rope_parameters", c.value))).(*types.Laguna)
		if m.Rope.Theta != c.full || m.SlidingRope.Theta != c.sliding ||
			m.Rope.PartialFactor != c.partial || m.SlidingRope.PartialFactor != c.rotary {
			t.Errorf("%s: %+v and %+v", c.value, m.Rope, m.SlidingRope)
		}
	}
}
