package checkpoint_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	mapping "github.com/ingotml/ingot/arch/gguf"
	_ "github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/checkpoint"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/safetensors"
)

const (
	up = "model.layers.0.mlp.up_proj.weight"
	q  = "model.layers.0.self_attn.q_proj.weight"
)

func openFile(path string, o checkpoint.Options) (*checkpoint.Checkpoint, error) {
	return checkpoint.Open(safetensors.Dir(filepath.Dir(path)), []string{filepath.Base(path)}, o)
}

func open(t *testing.T, path string, o checkpoint.Options) *checkpoint.Checkpoint {
	t.Helper()
	c, err := openFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range c.Sources() {
			f.Close()
		}
	})
	return c
}

func weight(t *testing.T, c *checkpoint.Checkpoint, name string) packed.Weight {
	t.Helper()
	i := slices.IndexFunc(c.Weights, func(w packed.Weight) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("there is no weight %s", name)
	}
	return c.Weights[i]
}

// floats reads a range of elements; codes reads it as codes and decodes them.
func floats(t *testing.T, w packed.Weight, begin, count int64) []float32 {
	t.Helper()
	raw := make([]byte, 4*count)
	if err := w.Read.Floats(raw, begin, count); err != nil {
		t.Fatal(err)
	}
	return numbers(raw)
}

func codes(t *testing.T, w packed.Weight, begin, count int64) []float32 {
	t.Helper()
	scales := quantize.F16 // which types other than affine ones ignore
	if w.Scales != "" {
		scales = quantize.DType(w.Scales)
	}
	groups := int(count) / w.Type.Group()
	b := w.Type.NewBlocks(scales, groups)
	if err := w.Read.Codes(b, begin, count); err != nil {
		t.Fatal(err)
	}
	if scales == quantize.F16 && w.Scales != "" {
		for _, p := range []*[]byte{&b.Scales, &b.Biases} {
			wide := make([]byte, 4*groups)
			if err := quantize.Cast(wide, quantize.F32, *p, scales); err != nil {
				t.Fatal(err)
			}
			*p = wide
		}
	}
	raw := make([]byte, 4*count)
	if err := w.Type.Decode(raw, quantize.F32, b, quantize.F32); err != nil {
		t.Fatal(err)
	}
	return numbers(raw)
}

func numbers(raw []byte) []float32 {
	out := make([]float32, len(raw)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return out
}

// decoded returns the elements of a tensor in a file.
func decoded(t *testing.T, f *gguftest.File, name string) []float32 {
	t.Helper()
	i := slices.IndexFunc(f.Tensors, func(t gguf.Tensor) bool { return t.Name == name })
	block, size := f.Tensors[i].Type.Block()
	out := make([]float32, len(f.Data[name])/size*block)
	if err := f.Tensors[i].Type.Decode(out, f.Data[name]); err != nil {
		t.Fatal(err)
	}
	return out
}

// permuted returns the rows of a projection as the converter's permutation is undone in transformers.
func permuted(list []float32, heads int) []float32 {
	rows := len(list) / gguftest.Hidden
	dim := rows / heads
	out := make([]float32, 0, len(list))
	for h := range heads {
		for half := range 2 {
			for i := range dim / 2 {
				row := h*dim + 2*i + half
				out = append(out, list[row*gguftest.Hidden:][:gguftest.Hidden]...)
			}
		}
	}
	return out
}

// Every type reads as ggml decodes it. Codes are kept where a format has them, and then decode to the same elements.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		kind  ggml.Type
		exact bool
		codes string // "" = none
		dtype safetensors.DType
	}{
		{ggml.Q4_0, false, "int4-g32", "F16"}, {ggml.Q4_1, false, "int4-g32", "F16"},
		{ggml.Q5_0, false, "int5-g32", "F16"}, {ggml.Q5_1, false, "int5-g32", "F16"},
		{ggml.Q8_0, false, "int8-g32", "F16"}, {ggml.MXFP4, false, "mxfp4", ""}, {ggml.NVFP4, false, "nvfp4", ""},
		{ggml.Q4_K, false, "int4-g32", "F16"}, {ggml.Q4_K, true, "int4-g32", "F16"},
		{ggml.Q5_K, false, "int5-g32", "F16"}, {ggml.Q5_K, true, "int5-g32", "F16"},
		{ggml.TQ1_0, false, "int2-g128", "F16"}, {ggml.TQ2_0, true, "int2-g128", "F16"},
		{ggml.Q1_0, false, "int2-g128", "F16"}, {ggml.Q2_0, false, "int2", "F16"}, {ggml.Q2_0, true, "int2", "F16"},
		{ggml.PQ2_0, false, "int2-g128", "F16"},
		{ggml.Q6_K, false, "", "F16"}, {ggml.Q6_K, true, "", "F32"}, {ggml.Q2_K, false, "", "F16"},
		{ggml.Q3_K, false, "", "F16"}, {ggml.IQ4XS, false, "", "F16"}, {ggml.IQ4NL, false, "", "F16"},
		{ggml.IQ2XXS, false, "", "F16"}, {ggml.IQ1M, true, "", "F32"}, {ggml.IQ3S, false, "", "F16"},
	} {
		t.Run(fmt.Sprintf("%v,exact=%v", c.kind, c.exact), func(t *testing.T) {
			f := gguftest.Llama(c.kind)
			open := open(t, f.Write(t, "x.gguf"), checkpoint.Options{Exact: c.exact})
			for _, tn := range []struct {
				name string
				want []float32
			}{
				{up, decoded(t, f, "blk.0.ffn_up.weight")},
				{q, permuted(decoded(t, f, "blk.0.attn_q.weight"), gguftest.Heads)},
			} {
				w := weight(t, open, tn.name)
				n := int64(len(tn.want))
				if got := floats(t, w, 0, n); !slices.Equal(got, tn.want) {
					t.Errorf("%s: the elements differ", tn.name)
				}
				const row = 3 * gguftest.Hidden
				if got := floats(t, w, row, gguftest.Hidden); !slices.Equal(got, tn.want[row:row+gguftest.Hidden]) {
					t.Errorf("%s: the elements of a row differ", tn.name)
				}
				if c.codes == "" {
					if w.Type != 0 || w.Why == "" || w.DType != c.dtype {
						t.Errorf("%s: codes %v (%s), elements %s", tn.name, w.Type, w.Why, w.DType)
					}
					continue
				}
				if w.Type.String() != c.codes || c.dtype != "" && w.DType != c.dtype {
					t.Errorf("%s: %v of %s, want %s", tn.name, w.Type, w.DType, c.codes)
				}
				bound := 0.0
				if !c.exact && (c.kind == ggml.Q4_K || c.kind == ggml.Q5_K) {
					bound = 2
				}
				worst := 0.0
				for i, x := range codes(t, w, 0, n) {
					worst = max(worst, math.Abs(float64(x)-float64(tn.want[i])))
				}
				if !(worst <= bound) || bound > 0 && !(worst > 0) {
					t.Errorf("%s: codes are off by %v", tn.name, worst)
				}
				// The bound is for the largest code, which a group need not have.
				if r := open.Rounding(); bound > 0 && tn.name == up && !(r >= worst && r < 1.5*worst) || bound == 0 && r != 0 {
					t.Errorf("%s: the reported error is %v, the largest one %v", tn.name, r, worst)
				}
			}
		})
	}
}

// A set of two files is one model.
func TestSplit(t *testing.T) {
	f := gguftest.Llama(ggml.Q8_0)
	dir, half := t.TempDir(), len(f.Tensors)/2
	parts := []*gguftest.File{
		{Metadata: slices.Clone(f.Metadata), Tensors: f.Tensors[:half], Data: f.Data},
		{Tensors: f.Tensors[half:], Data: f.Data},
	}
	for i, p := range parts {
		p.Set("split.no", gguf.Number(uint32(i)))
		p.Set("split.count", gguf.Number(2))
		p.Set("split.tensors.count", gguf.Number(uint32(len(f.Tensors))))
	}
	write := func(name string, p *gguftest.File) {
		if err := os.WriteFile(filepath.Join(dir, name), p.Bytes(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := func() (*checkpoint.Checkpoint, error) {
		return checkpoint.Open(safetensors.Dir(dir), []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
			checkpoint.Options{})
	}
	write("m-00001-of-00002.gguf", parts[0])
	names, err := checkpoint.Set("m-00002-of-00002.gguf")
	if err != nil || !slices.Equal(names, []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
		t.Fatalf("%q, %v", names, err)
	}
	if _, err := all(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part is missing: %v", err)
	}
	write("m-00002-of-00002.gguf", parts[1])
	c, err := all()
	if err != nil || len(c.Weights)+len(c.Plain) != len(f.Tensors) {
		t.Errorf("%v", err)
	}
	write("m-00002-of-00002.gguf", parts[0])
	if _, err := all(); !errors.Is(err, safetensors.ErrIncomplete) {
		t.Errorf("the first part twice: %v", err)
	}
	parts[1].Tensors = parts[1].Tensors[1:]
	write("m-00002-of-00002.gguf", parts[1])
	if _, err := all(); !errors.Is(err, safetensors.ErrIncomplete) {
		t.Errorf("a tensor is missing: %v", err)
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		names, wanted, want, error string
	}{
		{"README.md", "", "", ""},
		{"a.gguf mmproj-F16.gguf .b.gguf", "", "a.gguf", ""},
		{"x/mmproj-F16.gguf x/a.gguf", "", "x/a.gguf", ""},
		{"m-00002-of-00002.gguf m-00001-of-00002.gguf", "", "m-00001-of-00002.gguf m-00002-of-00002.gguf", ""},
		{"a.gguf b.GGUF", "", "", "ambiguous weights: it has several GGUF models: a.gguf, b.GGUF"},
		{"m-00003-of-00002.gguf", "", "", "part 3 of 2 does not exist"},
		{"m-Q4_K_M.gguf m-Q8_0.gguf", "q8_0", "m-Q8_0.gguf", ""},
		{"m-Q4_K_M.gguf m-UD-Q4_K_M.gguf", "Q4_K_M", "m-Q4_K_M.gguf", ""},
		{"m-Q4_K_M.gguf m-UD-Q4_K_M.gguf", "UD-Q4_K_M", "m-UD-Q4_K_M.gguf", ""},
		{"m.F16.gguf m.Q8_0.gguf", "m.F16.gguf", "m.F16.gguf", ""},
		{"m.F16.gguf m.Q8_0.gguf", "m.F16", "m.F16.gguf", ""},
		{"BF16/m-BF16-00001-of-00002.gguf m-F16.gguf", "BF16",
			"BF16/m-BF16-00001-of-00002.gguf BF16/m-BF16-00002-of-00002.gguf", ""},
		{"a-F16.gguf b-F16.gguf", "F16", "", "several files have the type F16: a-F16.gguf, b-F16.gguf"},
		{"a-F16.gguf", "16", "", "no such GGUF file: none is named 16 or has that type; there are a-F16.gguf"},
		{"model.safetensors", "F16", "", "there are no GGUF files; leave out :F16"},
	} {
		sets, err := checkpoint.Sets(checkpoint.Named(strings.Fields(c.names)))
		var got []string
		if err == nil {
			got, err = checkpoint.Choose(sets, c.wanted)
		}
		if strings.Join(got, " ") != c.want || (err == nil) != (c.error == "") ||
			err != nil && !strings.Contains(err.Error(), c.error) {
			t.Errorf("%s, %s: %q, %v", c.names, c.wanted, got, err)
		}
	}
}

// What cannot be imported is refused by name, in one line.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*gguftest.File)
		is   error
		want string
	}{
		{"architecture", func(f *gguftest.File) { f.Set("general.architecture", gguf.Text("bloom")) },
			arch.ErrUnknownArchitecture, `general.architecture "bloom": unknown architecture (docs/gguf.md lists the `},
		{"no architecture", func(f *gguftest.File) { f.Metadata = f.Metadata[1:] },
			mapping.ErrMetadata, "general.architecture is missing"},
		{"key", func(f *gguftest.File) { f.Set("llama.block_count", gguf.Text("x")) }, mapping.ErrMetadata,
			"llama.block_count"},
		{"missing key", func(f *gguftest.File) { f.Metadata = slices.Delete(f.Metadata, 3, 4) },
			mapping.ErrMetadata, "llama.embedding_length is missing"},
		{"heads", func(f *gguftest.File) { f.Set("llama.attention.head_count", gguf.Number(0)) },
			mapping.ErrMetadata, "llama.attention.head_count = 0"},
		{"tensor", func(f *gguftest.File) { f.Add("blk.0.attn_sinks.weight", ggml.F32, 4) },
			packed.ErrSource, "tensor blk.0.attn_sinks.weight: cannot import: a llama model has no such tensor"},
		{"layer", func(f *gguftest.File) { f.Add("blk.1.attn_norm.weight", ggml.F32, 4) },
			packed.ErrSource, "no such tensor"},
		{"rows", func(f *gguftest.File) { f.Set("llama.attention.head_count", gguf.Number(3)) },
			mapping.ErrMetadata, "llama.attention.head_count = 3"},
		{"integers", func(f *gguftest.File) { f.Tensors[1].Type = ggml.I32 },
			packed.ErrSource, "only weights of floating point"},
		{"rope", func(f *gguftest.File) { f.Set("llama.rope.scaling.type", gguf.Text("odd")) }, mapping.ErrMetadata, `"odd"`},
		{"rotated", func(f *gguftest.File) { f.Set("prism.hadamard.version", gguf.Number(1)) },
			mapping.ErrMetadata, "metadata prism.hadamard.version: its weights are rotated"},
		{"no embedding", func(f *gguftest.File) { f.Tensors = f.Tensors[1:] }, mapping.ErrMetadata, "token_embd.weight"},
	} {
		f := gguftest.Llama(ggml.F16)
		c.edit(f)
		_, err := openFile(f.Write(t, "x.gguf"), checkpoint.Options{})
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// apertus makes a model of one layer, whose parameters of xIELU are metadata.
func apertus() *gguftest.File {
	f := gguftest.Llama(ggml.F16)
	for i, p := range f.Metadata {
		f.Metadata[i].Key = strings.Replace(p.Key, "llama.", "apertus.", 1)
	}
	f.Set("general.architecture", gguf.Text("apertus"))
	f.Tensors = slices.DeleteFunc(f.Tensors, func(t gguf.Tensor) bool { return strings.Contains(t.Name, "ffn_gate") })
	for _, name := range []string{"attn_q_norm", "attn_k_norm"} {
		f.Add("blk.0."+name+".weight", ggml.F32, gguftest.Hidden/gguftest.Heads)
	}
	for i, name := range []string{"alpha_n", "alpha_p", "beta", "eps"} {
		f.Set("xielu."+name, gguf.Real(0.5+float32(i)))
	}
	return f
}

// Numbers of the metadata become tensors, one number for each layer or one for all of them.
func TestNumbers(t *testing.T) {
	f := apertus()
	c := open(t, f.Write(t, "m.gguf"), checkpoint.Options{})
	want := map[string]float32{"alpha_n": 0.5, "alpha_p": 1.5, "beta": 2.5, "eps": 3.5}
	for name, v := range want {
		i := slices.IndexFunc(c.Plain, func(s safetensors.Source) bool {
			return s.Name == "model.layers.0.mlp.act_fn."+name
		})
		if i < 0 {
			t.Fatalf("there is no %s", name)
		}
		raw := make([]byte, 4)
		if err := packed.PlainElements(c.Plain[i]).Floats(raw, 0, 1); err != nil {
			t.Fatal(err)
		}
		if got := numbers(raw)[0]; got != v {
			t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
	for name, v := range map[string]gguf.Value{"text": gguf.Text("x"), "integer": gguf.Number(1)} {
		f.Set("xielu.beta", v)
		_, err := openFile(f.Write(t, "m.gguf"), checkpoint.Options{})
		if !errors.Is(err, mapping.ErrMetadata) ||
			!strings.Contains(err.Error(), "xielu.beta must be a list of 1 float32 numbers") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.Metadata = slices.DeleteFunc(f.Metadata, func(p gguf.Pair) bool { return p.Key == "xielu.eps" })
	f.Set("xielu.beta", gguf.Real(1))
	_, err := openFile(f.Write(t, "m.gguf"), checkpoint.Options{})
	if !errors.Is(err, mapping.ErrMetadata) || !strings.Contains(err.Error(), "xielu.eps") {
		t.Errorf("without eps: %v", err)
	}
}
