package arch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/arch/table"
)

// tensorsOf returns a valid checkpoint for a table.
func tensorsOf(tb table.Table) []table.TensorInfo {
	var out []table.TensorInfo
	for _, s := range tb.Specs {
		h := table.TensorInfo{Name: s.Name, DType: "BF16", Shape: s.Shape, File: "model.safetensors"}
		if s.Types != nil {
			h.DType = s.Types[0]
		}
		out = append(out, h)
	}
	return out
}

func without(have []table.TensorInfo, name string) []table.TensorInfo {
	return slices.DeleteFunc(have, func(h table.TensorInfo) bool { return h.Name == name })
}

func names(m table.Match) []string {
	var out []string
	for _, t := range m.Tensors {
		out = append(out, t.Spec.Name+"<"+strings.Join(t.Sources, ","))
	}
	return out
}

func TestLlamaTable(t *testing.T) {
	m := mustLlama(t, "num_key_value_heads", "2", "num_hidden_layers", "1", "head_dim", "32", "attention_bias", "true",
		"mlp_bias", "true")
	var got []string
	for _, s := range m.Table().Specs {
		got = append(got, fmt.Sprint(s.Name, s.Shape))
	}
	want := []string{
		"model.embed_tokens.weight[384 64]",
		"model.layers.0.input_layernorm.weight[64]",
		"model.layers.0.self_attn.q_proj.weight[128 64]", "model.layers.0.self_attn.q_proj.bias[128]",
		"model.layers.0.self_attn.k_proj.weight[64 64]", "model.layers.0.self_attn.k_proj.bias[64]",
		"model.layers.0.self_attn.v_proj.weight[64 64]", "model.layers.0.self_attn.v_proj.bias[64]",
		"model.layers.0.self_attn.o_proj.weight[64 128]", "model.layers.0.self_attn.o_proj.bias[64]",
		"model.layers.0.post_attention_layernorm.weight[64]",
		"model.layers.0.mlp.gate_proj.weight[96 64]", "model.layers.0.mlp.gate_proj.bias[96]",
		"model.layers.0.mlp.up_proj.weight[96 64]", "model.layers.0.mlp.up_proj.bias[96]",
		"model.layers.0.mlp.down_proj.weight[64 96]", "model.layers.0.mlp.down_proj.bias[64]",
		"model.norm.weight[64]", "lm_head.weight[384 64]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := mustLlama(t, "tie_word_embeddings", "true").Table(); slices.ContainsFunc(got.Specs,
		func(s table.Spec) bool { return s.Name == "lm_head.weight" }) {
		t.Error("a tied model's table has a head of its own")
	}
}

func TestCheckFinds(t *testing.T) {
	tb := mustLlama(t, "num_hidden_layers", "1").Table()
	m, err := tb.Check(tensorsOf(tb))
	if err != nil || len(m.Tensors) != len(tb.Specs) || len(m.Dropped) != 0 {
		t.Fatalf("got %v, %v", m, err)
	}
	buffer := table.TensorInfo{Name: "model.layers.0.self_attn.rotary_emb.inv_freq", DType: "F32", Shape: []int64{8}}
	m, err = tb.Check(append(tensorsOf(tb), buffer))
	if err != nil || len(m.Dropped) != 1 || m.Dropped[0].Name != buffer.Name || m.Dropped[0].Reason == "" {
		t.Errorf("got %v, %v", m.Dropped, err)
	}
}

func TestCheckTied(t *testing.T) {
	tb := mustLlama(t, "num_hidden_layers", "1", "tie_word_embeddings", "true").Table()
	head := tensorsOf(tb)[0]
	head.Name = "lm_head.weight"

	m, err := tb.Check(append(tensorsOf(tb), head))
	if err != nil || len(m.Dropped) != 1 || m.Dropped[0].SameAs != "model.embed_tokens.weight" {
		t.Errorf("both: got %v, %v", m.Dropped, err)
	}
	m, err = tb.Check(append(without(tensorsOf(tb), "model.embed_tokens.weight"), head))
	if err != nil || len(m.Dropped) != 0 || names(m)[0] != "model.embed_tokens.weight<lm_head.weight" {
		t.Errorf("head alone: got %v, %v", names(m), err)
	}
	_, err = tb.Check(without(tensorsOf(tb), "model.embed_tokens.weight"))
	if !errors.Is(err, table.ErrMismatch) {
		t.Errorf("neither: error %v", err)
	}
}

func TestCheckProblems(t *testing.T) {
	tb := mustLlama(t).Table()
	const norm = "model.layers.1.input_layernorm.weight"
	change := func(f func(*table.TensorInfo)) []table.TensorInfo {
		have := tensorsOf(tb)
		f(&have[slices.IndexFunc(have, func(h table.TensorInfo) bool { return h.Name == norm })])
		return have
	}
	for _, c := range []struct {
		name string
		have []table.TensorInfo
		want string
	}{
		{"absent", without(tensorsOf(tb), norm), "tensor " + norm + ": absent: want shape [64]"},
		{
			"shape", change(func(h *table.TensorInfo) { h.Shape = []int64{63} }),
			"model.safetensors: tensor " + norm + ": wrong shape: has shape [63], want [64]",
		},
		{
			"rank", change(func(h *table.TensorInfo) { h.Shape = []int64{64, 1} }),
			"model.safetensors: tensor " + norm + ": wrong shape: has shape [64 1], want [64]",
		},
		{
			"type", change(func(h *table.TensorInfo) { h.DType = "I8" }),
			"model.safetensors: tensor " + norm + ": wrong type: has type I8, want one of BF16, F16, F32",
		},
		{
			"unknown", append(tensorsOf(tb), table.TensorInfo{Name: "mtp.fc.weight", Shape: []int64{2}, File: "b"}),
			"b: tensor mtp.fc.weight: unknown: shape [2], no such tensor in a llama model of this configuration",
		},
		{
			"layer too many", append(tensorsOf(tb), table.TensorInfo{Name: "model.layers.2.input_layernorm.weight"}),
			"tensor model.layers.2.input_layernorm.weight: unknown",
		},
		{
			"hostile name", append(tensorsOf(tb), table.TensorInfo{Name: "a\nb\x1b[0m" + strings.Repeat("x", 5000)}),
			`tensor "a\nb\x1b[0mxxx`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := tb.Check(c.have)
			if !errors.Is(err, table.ErrMismatch) {
				t.Fatalf("error %v, want a table error", err)
			}
			if !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
				t.Errorf("error %q, want one line %q", err, c.want)
			}
		})
	}
}

func TestCheckCollectsAll(t *testing.T) {
	tb := mustLlama(t).Table()
	wrong := tensorsOf(tb)
	for i := range wrong {
		wrong[i].Shape = []int64{1}
	}
	wrong = append(wrong[1:], table.TensorInfo{Name: "extra"})
	_, err := tb.Check(wrong)
	var te *table.TableError
	if !errors.As(err, &te) || len(te.Problems) != len(tb.Specs)+1 {
		t.Fatalf("error %v, want %d problems", err, len(tb.Specs)+1)
	}
	text := err.Error()
	want := "tensor model.embed_tokens.weight: absent: want shape [384 64] " +
		"(and 21 more: wrong shape: model.layers.0.input_layernorm.weight, "
	if !strings.HasPrefix(text, want) {
		t.Errorf("error %q, want %q...", text, want)
	}
	if want := ", 4 others; unknown: extra)"; !strings.HasSuffix(text, want) || strings.Contains(text, "\n") {
		t.Errorf("error %q, want one line that ends in %q", text, want)
	}
}
