package arch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

func tab(t *testing.T, name string) (table.Table, []table.TensorInfo) {
	t.Helper()
	for _, c := range checkpoints(t) {
		if c.Name == name {
			return c.detect(t).Table(), c.have(t)
		}
	}
	t.Fatalf("no checkpoint %s", name)
	return table.Table{}, nil
}

func matched(t *testing.T, name, tensor string) table.Matched {
	t.Helper()
	tb, have := tab(t, name)
	m, err := tb.Check(have)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(m.Tensors, func(m table.Matched) bool { return m.Spec.Name == tensor })
	if i < 0 {
		t.Fatalf("%s: no tensor %s", name, tensor)
	}
	return m.Tensors[i]
}

// build makes a tensor from sources with consecutively numbered elements.
func build(m table.Matched, sizes ...int64) []int64 {
	starts := []int64{0}
	for _, n := range sizes {
		starts = append(starts, starts[len(starts)-1]+n)
	}
	var out []int64
	for p := range m.Pieces() {
		for i := range p.Count {
			out = append(out, starts[p.Source]+p.Begin+i)
		}
	}
	return out
}

// In every layout the fused tensor holds, for each expert, the gate's rows and then up's.
func TestExpertsAreFused(t *testing.T) {
	const name, experts, width, hidden = "model.layers.1.mlp.experts.gate_up_proj", 4, 16, 32
	slab := int64(width * hidden)

	one := matched(t, "qwen3_moe-published", name)
	if one.Make != table.Stack || len(one.Sources) != 2*experts ||
		one.Sources[3] != "model.layers.1.mlp.experts.1.up_proj.weight" {
		t.Errorf("one per expert: %s from %v", one.Make, one.Sources)
	}
	if got := build(one, slices.Repeat([]int64{slab}, 2*experts)...); !slices.IsSorted(got) ||
		len(got) != 2*experts*int(slab) {
		t.Error("one per expert: the sources are not one after another")
	}

	stacked := matched(t, "qwen3_moe-mlx", name)
	if stacked.Make != table.Interleave || len(stacked.Sources) != 2 {
		t.Errorf("stacked: %s from %v", stacked.Make, stacked.Sources)
	}
	got := build(stacked, experts*slab, experts*slab)
	for e := range int64(experts) {
		// Gate and up of expert e start e slabs into their sources.
		if gate, up := got[2*e*slab], got[(2*e+1)*slab]; gate != e*slab || up != (experts+e)*slab {
			t.Errorf("stacked: expert %d starts with %d and %d", e, gate, up)
		}
	}
	if down := matched(t, "qwen3_moe-mlx", "model.layers.1.mlp.experts.down_proj"); down.Make != table.Copy {
		t.Errorf("stacked: down_proj by %s from %v", down.Make, down.Sources)
	}
	if fused := matched(t, "qwen3_moe-fused", name); fused.Make != table.Copy {
		t.Errorf("fused: %s from %v", fused.Make, fused.Sources)
	}
}

func TestLayoutProblems(t *testing.T) {
	edit := func(name string, f func([]table.TensorInfo) []table.TensorInfo) error {
		tb, have := tab(t, name)
		_, err := tb.Check(f(have))
		return err
	}
	drop := func(parts ...string) func([]table.TensorInfo) []table.TensorInfo {
		return func(have []table.TensorInfo) []table.TensorInfo {
			return slices.DeleteFunc(have, func(h table.TensorInfo) bool {
				return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(h.Name, p) })
			})
		}
	}
	for _, c := range []struct {
		name string
		err  error
		want []string
	}{
		{"experts missing", edit("qwen3_moe-published", drop("layers.1.mlp.experts.1.up", "layers.1.mlp.experts.3.up")),
			[]string{
				"tensor model.layers.1.mlp.experts.1.up_proj.weight: absent: want shape [16 32], " +
					"to make model.layers.1.mlp.experts.gate_up_proj",
				"absent: model.layers.1.mlp.experts.3.up_proj.weight"}},
		{
			"all down projections missing", edit("qwen3_moe-published", drop("down_proj")),
			[]string{"and 4 more: absent: model.layers.1.mlp.experts.0.down_proj.weight"},
		},
		{"expert too many", edit("qwen3_moe-published", func(have []table.TensorInfo) []table.TensorInfo {
			return append(have, table.TensorInfo{Name: "model.layers.1.mlp.experts.4.up_proj.weight", DType: "BF16",
				Shape: []int64{16, 32}})
		}), []string{"tensor model.layers.1.mlp.experts.4.up_proj.weight: unknown"}},
		{"two layouts", edit("qwen3_moe-published", func(have []table.TensorInfo) []table.TensorInfo {
			return append(drop("down_proj")(have), table.TensorInfo{Name: "model.layers.1.mlp.experts.down_proj", DType: "BF16",
				Shape: []int64{4, 32, 16}},
				table.TensorInfo{Name: "model.layers.0.mlp.down_proj.weight", DType: "BF16", Shape: []int64{32, 48}})
		}), []string{
			"tensor model.layers.1.mlp.experts.down_proj: mixed layouts: it is fused, " +
				"but model.layers.1.mlp.experts.gate_up_proj is one per expert",
		}},
		{"two types in one bank", edit("qwen3_moe-published", func(have []table.TensorInfo) []table.TensorInfo {
			i := slices.IndexFunc(have, func(h table.TensorInfo) bool {
				return strings.HasSuffix(h.Name,
					"experts.2.up_proj.weight")
			})
			have[i].DType = "F32"
			return have
		}), []string{
			"experts.2.up_proj.weight: wrong type: has type F32, " +
				"but model.layers.1.mlp.experts.0.gate_proj.weight has BF16",
		}},
		{
			"half a tower", edit("qwen3_5-published", drop("visual.blocks.1.", "visual.merger")),
			[]string{"model.visual.blocks.1.norm1.weight: absent", "model.visual.merger.norm.weight"},
		},
		{"no tower", edit("qwen3_5-published", drop("visual")), []string{"model.visual.patch_embed.proj.weight: absent"}},
		{
			"half a head for the next token", edit("qwen3_5-published", drop("mtp.fc")),
			[]string{"tensor mtp.fc.weight: absent"},
		},
		{"token order that is no integer", edit("gemma4_assistant", func(have []table.TensorInfo) []table.TensorInfo {
			i := slices.IndexFunc(have, func(h table.TensorInfo) bool { return h.Name == "masked_embedding.token_ordering" })
			have[i].DType = "F32"
			return have
		}), []string{"tensor masked_embedding.token_ordering: wrong type: has type F32, want one of I64, I32"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !errors.Is(c.err, table.ErrMismatch) {
				t.Fatalf("error %v", c.err)
			}
			for _, want := range c.want {
				if !strings.Contains(c.err.Error(), want) {
					t.Errorf("error %q, want %q", c.err, want)
				}
			}
		})
	}
	if err := edit("qwen3_5-published", drop("mtp.")); err != nil {
		t.Errorf("without the head for the next token: %v", err)
	}
	if err := edit("qwen3_5-published", drop("patch_embed.proj.bias")); err != nil {
		t.Errorf("without the bias of patches: %v", err)
	}
}

// The checkpoint determines the number of learned positions.
func TestPositionCount(t *testing.T) {
	tb, have := tab(t, "qwen3_5")
	i := slices.IndexFunc(have, func(h table.TensorInfo) bool { return strings.HasSuffix(h.Name, "pos_embed.weight") })
	have[i].Shape = []int64{49, 32}
	m, err := tb.Check(have)
	if err != nil {
		t.Fatal(err)
	}
	i = slices.IndexFunc(m.Tensors, func(m table.Matched) bool {
		return strings.HasSuffix(m.Spec.Name,
			"pos_embed.weight")
	})
	if got := m.Tensors[i].Spec.Shape; !slices.Equal(got, []int64{49, 32}) {
		t.Errorf("shape %v", got)
	}
}

// mlx-lm adds 1 to the norm weights that it writes. The shape of the convolutions reveals such a checkpoint.
func TestShiftIsUndone(t *testing.T) {
	for _, c := range []struct {
		checkpoint, prefix string
		shifted            bool
	}{{"qwen3_5-mlx", table.NestedPrefix, true}, {"qwen3_5_moe-mlx", table.NestedPrefix, true},
		{"qwen3_5-published", table.NestedPrefix, false}, {"qwen3_5_text", table.TextPrefix, false}} {
		for _, name := range []string{"layers.0.input_layernorm.weight", "layers.3.self_attn.k_norm.weight", "norm.weight"} {
			m := matched(t, c.checkpoint, c.prefix+name)
			if shifted := m.Make == table.Add && m.Add == -1; shifted != c.shifted {
				t.Errorf("%s: %s by %s %v", c.checkpoint, name, m.Make, m.Add)
			}
		}
		if m := matched(t, c.checkpoint, c.prefix+"layers.0.linear_attn.norm.weight"); m.Make != table.Copy {
			t.Errorf("%s: the plain norm by %s", c.checkpoint, m.Make)
		}
		want := table.Copy
		if c.shifted {
			want = table.Reshape
		}
		if m := matched(t, c.checkpoint, c.prefix+"layers.0.linear_attn.conv1d.weight"); m.Make != want ||
			!slices.Equal(m.Spec.Shape, []int64{48, 1, 4}) {
			t.Errorf("%s: convolution by %s as %v", c.checkpoint, m.Make, m.Spec.Shape)
		}
	}
}

func TestSharedKeysAreDropped(t *testing.T) {
	tb, have := tab(t, "gemma4-e2b-published")
	m, err := tb.Check(have)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, d := range m.Dropped {
		reasons[d.Name] = d.Reason
	}
	for name, want := range map[string]string{
		"model.language_model.layers.3.self_attn.k_proj.weight": "not used: layer 3 attends the keys and values of layer 1",
		"model.language_model.layers.5.self_attn.v_proj.weight": "not used: layer 5 attends the keys and values of layer 2",
		"model.vision_tower.patch_embedder.input_proj.weight": "pictures are not supported for gemma4, " +
			"its text model is imported",
		"model.embed_audio.embedding_projection.weight": "sound is not supported, the text model is imported",
	} {
		if reasons[name] != want {
			t.Errorf("%s: reason %q, want %q", name, reasons[name], want)
		}
	}
	if _, ok := reasons["model.language_model.layers.2.self_attn.k_proj.weight"]; ok {
		t.Error("keys of a layer with its own are dropped")
	}
}

// A text model is found under any accepted prefix, in combination with any accepted prefix of a tower.
func TestPrefixes(t *testing.T) {
	for _, c := range []struct{ checkpoint, prefix string }{
		{"gemma4-31b", table.NestedPrefix}, {"gemma3_text", table.TextPrefix}, {"qwen3_5", table.NestedPrefix},
		{"qwen3_moe", table.TextPrefix},
		{"glm4_moe_lite", table.TextPrefix}, {"llama", table.TextPrefix},
	} {
		tb, have := tab(t, c.checkpoint)
		for _, prefix := range config.TextPrefixes {
			for _, tower := range []string{"vision_tower.", "visual.", prefix + "visual.", prefix + "vision_tower."} {
				renamed := slices.Clone(have)
				for i := range renamed {
					if rest, ok := strings.CutPrefix(renamed[i].Name, "model.visual."); ok && c.checkpoint == "qwen3_5" {
						renamed[i].Name = tower + rest
					} else if rest, ok := strings.CutPrefix(renamed[i].Name, c.prefix); ok {
						renamed[i].Name = prefix + rest
					}
				}
				m, err := tb.Check(renamed)
				if err != nil {
					t.Fatalf("%s under %q, its tower under %q: %v", c.checkpoint, prefix, tower, err)
				}
				got := len(m.Dropped)
				for _, tensor := range m.Tensors {
					got += len(tensor.Sources)
				}
				if got != len(have) {
					t.Errorf("%s under %q: %d of %d tensors", c.checkpoint, prefix, got, len(have))
				}
			}
		}
	}
	// A part whose tensors have two different prefixes is an error.
	tb, have := tab(t, "gemma3_text")
	for i := range have[:10] {
		have[i].Name = "language_model." + have[i].Name
	}
	if _, err := tb.Check(have); !errors.Is(err, table.ErrMismatch) {
		t.Errorf("two prefixes: %v", err)
	}
}

// Fused experts that are transposed are told by their shapes, all of a layer alike.
func TestTransposedExperts(t *testing.T) {
	var c checkpoint
	for _, x := range checkpoints(t) {
		if x.Name == "qwen3_moe-fused" {
			c = x
		}
	}
	m := c.detect(t)
	interleaved := func(end string) []table.TensorInfo {
		have := c.have(t)
		for i := range have {
			if s := have[i].Shape; len(s) == 3 && strings.HasSuffix(have[i].Name, end) {
				have[i].Shape = []int64{s[0], s[2], s[1]}
			}
		}
		return have
	}
	match, err := m.Table().Check(interleaved(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range match.Tensors {
		if is := strings.Contains(x.Spec.Name, ".experts."); x.Transposed != is {
			t.Errorf("%s: transposed %t", x.Spec.Name, x.Transposed)
		}
	}
	// One of the two is square, so that the other decides.
	for _, s := range m.Table().Specs {
		if strings.Contains(s.Name, ".experts.") && s.IsSquare() != strings.Contains(s.Name, "gate_up") {
			t.Errorf("%s has shape %v", s.Name, s.Shape)
		}
	}
	if match, err = m.Table().Check(c.have(t)); err != nil {
		t.Fatal(err)
	}
	for _, x := range match.Tensors {
		if x.Transposed {
			t.Errorf("%s: transposed", x.Spec.Name)
		}
	}
}
