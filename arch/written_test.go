package arch_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Write is the inverse of Check: every element is read back from the place it was written to.
func TestWrite(t *testing.T) {
	configs, err := filepath.Glob(filepath.Join("..", "testdata", "models", "*", "config.json"))
	if err != nil || len(configs) == 0 {
		t.Fatal(err)
	}
	for _, path := range configs {
		name := filepath.Base(filepath.Dir(path))
		config, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Detect(config)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			ModelType string `json:"model_type"`
		}
		if err := pyjson.Unmarshal(config, &c); err != nil {
			t.Fatal(err)
		}
		tab := m.Table()
		var have []table.TensorInfo
		for _, s := range tab.Specs {
			have = append(have, table.TensorInfo{Name: s.Name, DType: typeOf(s), Shape: s.Shape})
		}
		for _, style := range []table.Style{table.HuggingFace, table.MLX} {
			for _, shifted := range []bool{false, true} {
				if shifted && (style == table.HuggingFace || !strings.HasPrefix(name, "qwen3_5")) {
					continue
				}
				written, err := tab.Write(have, table.WriteOptions{Style: style, Published: arch.Published(c.ModelType),
					Shifted: shifted})
				if err != nil {
					t.Errorf("%s, %s: %v", name, style, err)
					continue
				}
				checkWritten(t, name+", "+string(style), tab, have, written)
			}
		}
	}
}

func checkWritten(t *testing.T, what string, tab table.Table, have []table.TensorInfo, written []table.Written) {
	t.Helper()
	var files []table.TensorInfo
	byName, types := map[string]table.Written{}, map[string]string{}
	for _, h := range have {
		types[h.Name] = h.DType
	}
	for _, w := range written {
		files = append(files, table.TensorInfo{Name: w.Name, DType: types[w.From[0].Tensor], Shape: w.Shape})
		if _, twice := byName[w.Name]; twice {
			t.Errorf("%s: %s is written twice", what, w.Name)
		}
		byName[w.Name] = w
	}
	match, err := tab.Check(files)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	var names, want []string
	for _, h := range have {
		want = append(want, h.Name)
	}
	for _, m := range match.Tensors {
		names = append(names, m.Spec.Name)
		var at int64
		for p := range m.Pieces() {
			w := byName[m.Sources[p.Source]]
			if w.Transposed != m.Transposed {
				t.Errorf("%s: %s: transposed %v, then %v", what, m.Spec.Name, w.Transposed, m.Transposed)
			}
			if w.Add != -m.Add {
				t.Errorf("%s: %s: %v is added, then %v", what, m.Spec.Name, w.Add, m.Add)
			}
			for k, end := range []int64{p.Begin, p.Begin + p.Count - 1} {
				from, element := elementOf(w, end)
				if from != m.Spec.Name || element != at+int64(k)*(p.Count-1) {
					t.Errorf("%s: element %d of %s is element %d of %s", what, at+int64(k)*(p.Count-1), m.Spec.Name, element, from)
					return
				}
			}
			at += p.Count
		}
		if at != table.Elements(m.Spec.Shape) {
			t.Errorf("%s: %s has %d elements, want %d", what, m.Spec.Name, at, table.Elements(m.Spec.Shape))
		}
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func typeOf(s table.Spec) string {
	if s.Types != nil {
		return s.Types[0]
	}
	return "BF16"
}

// elementOf returns the model tensor and element that element i of a written tensor comes from.
func elementOf(w table.Written, i int64) (string, int64) {
	for _, p := range w.From {
		if i < p.Count {
			return p.Tensor, p.Begin + i
		}
		i -= p.Count
	}
	return "", -1
}

// Names and layouts are the ones that other programs read.
func TestWrittenNames(t *testing.T) {
	for _, c := range []struct {
		model      string
		style      table.Style
		want, none string
	}{
		{"qwen3_moe-published", table.HuggingFace, "model.layers.1.mlp.experts.3.up_proj.weight", "gate_up_proj"},
		{"qwen3_moe-published", table.MLX, "model.layers.1.mlp.switch_mlp.up_proj.weight", "experts."},
		{"qwen3_5_moe-published", table.HuggingFace, "model.language_model.layers.0.mlp.experts.gate_up_proj", "switch_mlp"},
		{
			"qwen3_5_moe-published", table.MLX, "language_model.model.layers.0.mlp.switch_mlp.gate_proj.weight",
			"model.language_model.",
		},
		{"qwen3_5_moe-next-published", table.HuggingFace, "model.layers.0.linear_attn.in_proj_qkvz.weight", "in_proj_qkv."},
		{"gemma3-published", table.HuggingFace, "language_model.model.layers.0.mlp.up_proj.weight", "model.language_model."},
		{"llama4-published", table.HuggingFace, "language_model.model.layers.1.feed_forward.experts.gate_up_proj",
			"model.language_model."},
		{"deepseek_v3-published", table.HuggingFace, "model.layers.1.mlp.experts.0.gate_proj.weight", "gate_up_proj"},
		{"laguna-published", table.HuggingFace, "model.layers.1.mlp.shared_expert.down_proj.weight", "shared_experts"},
		{"lfm2_moe-published", table.MLX, "model.layers.0.feed_forward.gate_proj.weight", ".w1."},
		{"mimo_v2_flash-published", table.MLX, "model.layers.1.self_attn.attention_sink_bias", ".sinks"},
		{"gemma4-26b-a4b", table.MLX, "language_model.model.layers.0.experts.switch_glu.down_proj.weight", "gate_up_proj"},
		{"gemma4-26b-a4b", table.HuggingFace, "model.language_model.layers.0.experts.down_proj", "switch_glu"},
	} {
		config, err := os.ReadFile(filepath.Join("..", "testdata", "models", c.model, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Detect(config)
		if err != nil {
			t.Fatal(err)
		}
		var have []table.TensorInfo
		for _, s := range m.Table().Specs {
			have = append(have, table.TensorInfo{Name: s.Name, Shape: s.Shape})
		}
		var top struct {
			ModelType string `json:"model_type"`
		}
		if err := json.Unmarshal(config, &top); err != nil {
			t.Fatal(err)
		}
		written, err := m.Table().Write(have, table.WriteOptions{Style: c.style, Published: arch.Published(top.ModelType)})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(written, func(w table.Written) bool { return w.Name == c.want }) {
			t.Errorf("%s, %s: no %s", c.model, c.style, c.want)
		}
		for _, w := range written {
			if strings.Contains(w.Name, c.none) {
				t.Errorf("%s, %s: %s", c.model, c.style, w.Name)
			}
		}
	}
}
