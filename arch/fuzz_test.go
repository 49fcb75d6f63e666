package arch_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
)

func FuzzDetect(f *testing.F) {
	f.Add([]byte("{" + base + "}"))
	f.Add([]byte("{" + base + `,"rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":64}}`))
	f.Add([]byte("{" + base +
		`,"rope_parameters":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4}}`))
	for _, c := range checkpoints(f) {
		f.Add([]byte(c.Config))
	}
	for _, p := range published {
		f.Add([]byte(p.config))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		if _, err := arch.DetectFamily(config); err != nil {
			wantShortLine(t, err)
		}
		m, err := arch.Detect(config)
		if err != nil {
			wantShortLine(t, err)
			return
		}
		checkModel(t, m)
	})
}

// checkModel checks invariants of any accepted configuration.
func checkModel(t *testing.T, m arch.Model) {
	t.Helper()
	if layersOf(m) > 64 {
		return // only more of the same layers
	}
	if p := m.Facts().Params; p <= 0 || p > 1<<59 {
		t.Errorf("%d parameters", p)
	}
	for _, kind := range []string{config.FullAttention, config.SlidingAttention} {
		rope, dim := ropeOf(m, kind)
		for _, length := range []int{0, 1 << 20} {
			freqs, scale := rope.FrequenciesAt(dim, length)
			for i, v := range append(freqs, scale) {
				if !(v >= 0 && v <= 1e19) {
					t.Fatalf("frequency %d of %+v is %v", i, rope, v)
				}
			}
		}
	}
	tb := m.Table()
	for _, s := range tb.Specs {
		if slices.ContainsFunc(s.Shape, func(n int64) bool { return n <= 0 }) {
			t.Fatalf("%s has shape %v", s.Name, s.Shape)
		}
	}
	if _, err := tb.Check(tensorsOf(tb)); err != nil {
		t.Fatalf("the table does not accept its own tensors: %v", err)
	}
}

func wantShortLine(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
		t.Errorf("error is not one short line: %q", err)
	}
}

// layersOf counts layers and blocks without making a table.
func layersOf(m arch.Model) int {
	switch m := m.(type) {
	case *types.Gemma4Assistant:
		return m.Text.Layers
	case *types.Qwen35Moe:
		return layersOf(&m.Qwen35)
	case *types.Qwen35:
		if m.Vision != nil {
			return m.Layers + m.Vision.Depth
		}
	}
	return len(m.State())
}

// FuzzKey replaces one key's value in a real configuration. This reaches deeper code than mutating bytes.
func FuzzKey(f *testing.F) {
	all := checkpoints(f)
	for i := range all {
		f.Add(uint(i), uint(i), "1")
	}
	for i, value := range []string{"null", "0", "-1", "1e30", "[]", "[1,2,3]", "{}", `"x"`,
		`{"full_attention":{"rope_type":"longrope"}}`, `{"rope_type":"dynamic","factor":2}`, "4096", "true"} {
		f.Add(uint(3*i), uint(7*i), value)
	}
	f.Fuzz(func(t *testing.T, which, key uint, value string) {
		if !json.Valid([]byte(value)) {
			return
		}
		c := all[which%uint(len(all))]
		paths := keyPaths(t, c.Config, nil)
		config := setKey(t, c.Config, paths[key%uint(len(paths))], value)
		m, err := arch.Detect(config)
		if err != nil {
			wantShortLine(t, err)
			return
		}
		checkModel(t, m)
	})
}

// keyPaths lists the keys of a configuration and of its nested objects.
func keyPaths(t *testing.T, data json.RawMessage, prefix []string) [][]string {
	t.Helper()
	m := map[string]json.RawMessage{}
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	var out [][]string
	for _, k := range config.SortedKeys(m) {
		p := append(slices.Clone(prefix), k)
		out = append(append(out, p), keyPaths(t, m[k], p)...)
	}
	return out
}
