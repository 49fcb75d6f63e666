package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
)

// wideConfig has rows of 128 elements, so that every type can be used.
const wideConfig = `{
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 256, "hidden_size": 128, ` +
	`"intermediate_size": 256,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16"
}
`

// finiteWeights makes all weights finite.
func finiteWeights(c *checkpoint) *checkpoint {
	for _, list := range c.tensors {
		for _, tn := range list {
			for i := 1; i < len(tn.data); i += 2 {
				tn.data[i] = 0x3c | tn.data[i]&0x83 // around 0.01
			}
		}
	}
	return c
}

// typed casts all weights.
func typed(t *testing.T, c *checkpoint, d quantize.DType) *checkpoint {
	t.Helper()
	for _, list := range c.tensors {
		for i := range list {
			n := list[i].NumElements()
			if d == quantize.F64 {
				f32 := encoded(t, quantize.ToF32, list[i].data, quantize.BF16, n)
				list[i].data = nil
				for ; len(f32) > 0; f32 = f32[4:] {
					bits := uint32(f32[0]) | uint32(f32[1])<<8 | uint32(f32[2])<<16 | uint32(f32[3])<<24
					b := math.Float64bits(float64(math.Float32frombits(bits)))
					for s := range 8 {
						list[i].data = append(list[i].data, byte(b>>(8*s)))
					}
				}
			} else {
				list[i].data = encoded(t, quantize.CastTo(d), list[i].data, quantize.BF16, n)
			}
			list[i].DType = safetensors.DType(d)
		}
	}
	return c
}

func encoded(t *testing.T, to quantize.Type, data []byte, from quantize.DType, n int64) []byte {
	t.Helper()
	out := make([]byte, n*int64(to.DType().Size()))
	if err := to.Encode(quantize.Blocks{Packed: out}, data, from); err != nil {
		t.Fatal(err)
	}
	return out
}

func mustResolve(t *testing.T, s *store.Store, name string) *store.Entry {
	t.Helper()
	e, err := s.Resolve(t.Context(), modelName(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// arrays reads a tensor's blob: its metadata, and its arrays.
func arrays(t *testing.T, s *store.Store, img manifest.Image, name string) (map[string]string, []tensor) {
	t.Helper()
	l, ok := img.Find(manifest.KindTensor, name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	f, err := safetensors.Open(s.BlobPath(l.Digest))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []tensor
	for _, tn := range f.Header().Tensors {
		data, err := io.ReadAll(f.Reader(tn))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tensor{tn, data})
	}
	return f.Header().Metadata, out
}

func sourceTensor(c *checkpoint, name string) tensor {
	for _, list := range c.tensors {
		for _, tn := range list {
			if tn.Name == name {
				return tn
			}
		}
	}
	return tensor{}
}

// Blobs equal package quantize's output for the source, whatever its type.
func TestQuantizedBlobs(t *testing.T) {
	const name = "model.layers.1.mlp.gate_proj.weight"
	for _, c := range []struct {
		to     quantize.Type
		from   quantize.DType
		middle quantize.DType
		meta   string
		keys   string
	}{
		{quantize.Int4, quantize.BF16, "", "int4 64 affine-1", "U32 [256 16], .scale BF16 [256 2], .bias BF16 [256 2]"},
		{
			quantize.Int3.WithGroup(32), quantize.F16, "", "int3 32 affine-1",
			"U32 [256 12], .scale F16 [256 4], .bias F16 [256 4]",
		},
		{
			quantize.Int8.WithGroup(128), quantize.F32, "", "int8 128 affine-1",
			"U32 [256 32], .scale F32 [256 1], .bias F32 [256 1]",
		},
		{
			quantize.Int5, quantize.F64, quantize.F32, "int5 64 affine-1", "U32 [256 20], .scale F32 [256 2], .bias F32 [256 2]",
		},
		{quantize.MXFP4, quantize.BF16, "", "mxfp4 32 mxfp4-1", "U32 [256 16], .scale U8 [256 4]"},
		{quantize.MXFP8, quantize.F64, quantize.F32, "mxfp8 32 mxfp8-1", "U32 [256 32], .scale U8 [256 4]"},
		{quantize.NVFP4, quantize.F16, "", "nvfp4 16 nvfp4-1", "U32 [256 16], .scale U8 [256 8]"},
		{quantize.ToF32, quantize.BF16, "", "  ", "F32 [256 128]"},
		{quantize.ToBF16, quantize.F32, "", "  ", "BF16 [256 128]"},
		{quantize.ToF16, quantize.F64, "", "  ", "F16 [256 128]"},
	} {
		t.Run(fmt.Sprintf("%s from %s", c.to, c.from), func(t *testing.T) {
			ck := typed(t, finiteWeights(tiny(t, wideConfig, 1)), c.from)
			store := openStore(t)
			mustCreate(t, store, "x", from(ck.write(t, t.TempDir())), Options{Precision: recipe.Precision{Type: c.to}})
			entry := mustResolve(t, store, "x")
			meta, have := arrays(t, store, entry.Image, name)
			if got := meta[blob.MetaType] + " " + meta[blob.MetaGroup] + " " + meta[blob.MetaRule]; got != c.meta {
				t.Errorf("metadata %q, want %q", got, c.meta)
			}
			var keys []string
			for _, h := range have {
				keys = append(keys, strings.TrimSpace(fmt.Sprintf("%s %s %v", strings.TrimPrefix(h.Name, name), h.DType, h.Shape)))
			}
			if got := strings.Join(keys, ", "); got != c.keys {
				t.Errorf("keys %s, want %s", got, c.keys)
			}
			src, d := sourceTensor(ck, name), c.from
			if c.middle != "" {
				src.data, d = encoded(t, quantize.CastTo(c.middle), src.data, c.from, src.NumElements()), c.middle
			}
			size := c.to.GroupSizes(d)
			groups := len(src.data) / size.Source
			want := quantize.Blocks{Packed: make([]byte, groups*size.Packed), Scales: make([]byte, groups*size.Scales),
				Biases: make([]byte, groups*size.Biases)}
			if err := c.to.Encode(want, src.data, d); err != nil {
				t.Fatal(err)
			}
			for i, w := range [][]byte{want.Packed, want.Scales, want.Biases} {
				if i < len(have) && !bytes.Equal(have[i].data, w) || i >= len(have) && len(w) > 0 {
					t.Errorf("array %d differs", i)
				}
			}
		})
	}
}

func planOf(t *testing.T, c *checkpoint, p recipe.Precision) (*plan.Plan, error) {
	t.Helper()
	return DryRun(t.Context(), nil, from(c.write(t, t.TempDir())), Options{Precision: p})
}

func typesOf(p *plan.Plan) map[string]string {
	out := map[string]string{}
	for _, tn := range p.Tensors {
		out[tn.Name] = tn.Type
	}
	return out
}

func rule(t *testing.T, text string) recipe.Rule {
	t.Helper()
	r, _, err := recipe.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRules(t *testing.T) {
	ck := tiny(t, wideConfig, 1)
	p, err := planOf(t, ck, recipe.Precision{Type: quantize.Int4, Rules: []recipe.Rule{
		rule(t, "*.mlp.*=int8"), rule(t, "*.gate_proj.weight=mxfp4"),
		rule(t, "model.layers.0.self_attn.q_proj.weight=source"), rule(t, "model.norm.weight=f32"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := typesOf(p)
	want := map[string]string{
		"model.layers.0.mlp.up_proj.weight": "int8", "model.layers.1.mlp.gate_proj.weight": "mxfp4",
		"model.layers.0.self_attn.q_proj.weight": "bf16",
		"model.layers.1.self_attn.q_proj.weight": "int4", "model.norm.weight": "f32",
		"model.layers.0.input_layernorm.weight": "bf16",
	}
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s: %s, want %s", name, got[name], w)
		}
	}
	for _, tn := range p.Tensors {
		if tn.Name == "model.layers.0.mlp.up_proj.weight" && tn.Rule != "rule *.mlp.*=int8" {
			t.Errorf("rule %q", tn.Rule)
		}
	}
	for text, want := range map[string]string{
		"*.nosuch.*=int8":                           "quantization rule *.nosuch.*=int8: matches no tensor",
		"model.norm.weight=int8":                    "quantization rule model.norm.weight=int8: ",
		"model.layers.0.input_layernorm.*=int4-g32": "matches no tensor",
	} {
		if _, err := planOf(t, ck, recipe.Precision{Rules: []recipe.Rule{rule(t, text)}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

func TestPlanIsData(t *testing.T) {
	p, err := planOf(t, tiny(t, wideConfig, 1), recipe.Precision{Type: quantize.Int4, Uniform: true})
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, tn := range p.Tensors {
		if tn.Rule == "" || len(tn.Transform) == 0 || len(tn.Sources) == 0 || len(tn.Arrays) == 0 || tn.Size <= tn.Bytes {
			t.Errorf("%+v", tn)
		}
		sum += tn.Bytes
	}
	if p.Totals.Bytes != sum || p.Totals.Tensors != len(p.Tensors) || p.Totals.Params != p.Config.Params ||
		p.Totals.BitsPerWeight < 4.5 || p.Totals.BitsPerWeight > 6 {
		t.Errorf("totals %+v", p.Totals)
	}
	if p.Config.Quantization != "int4" || p.Config.DType != "BF16" {
		t.Errorf("config %+v", p.Config)
	}
}

// A number that cannot be quantized is an error with its position, in any batch and source.
func TestNotFinite(t *testing.T) {
	const name = "model.layers.1.mlp.down_proj.weight"
	ck := finiteWeights(tiny(t, wideConfig, 1))
	ck.edit(name, func(tn *tensor) { tn.data[2*1234], tn.data[2*1234+1] = 0x80, 0x7f })
	dir := ck.write(t, t.TempDir())
	store := openStore(t)
	_, err := Create(t.Context(), store, modelName(t, "x"), from(dir),
		Options{Precision: recipe.Precision{Type: quantize.Int8}})
	if !errors.Is(err, quantize.ErrNotFinite) || !strings.Contains(err.Error(),
		"model.safetensors: tensor "+name+": element 1234 is +Inf") {
		t.Errorf("error %v", err)
	}
	if left := contents(t, store); len(left) != 0 {
		t.Errorf("left %q", left)
	}
	mustCreate(t, store, "x", from(dir), Options{}) // a copy does not quantize
}

func TestRecord(t *testing.T) {
	store := openStore(t)
	p := recipe.Precision{Type: quantize.Int4, Uniform: true, Rules: []recipe.Rule{{Match: "lm_head.weight"},
		rule(t, "*.v_proj.weight=int8-g32")}}
	mustCreate(t, store, "x", from(finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())), Options{Precision: p})
	img := mustResolve(t, store, "x").Image
	want := `{"quantization":{"quantize":"int4","uniform":true,"rules":[{"match":"lm_head.weight","type":"source"},` +
		`{"match":"*.v_proj.weight","type":"int8-g32"}],"rule_set":"rules-2"}}`
	if got := readLayer(t, store, img, manifest.KindFile, settings.RecordName); got != want {
		t.Errorf("record %s, want %s", got, want)
	}
	if img.Config.Quantization != "int4" {
		t.Errorf("quantization %q", img.Config.Quantization)
	}
	index := readLayer(t, store, img, manifest.KindFile, source.IndexName)
	for _, key := range []string{"model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight.scale",
		"model.layers.0.mlp.up_proj.weight.bias"} {
		if !strings.Contains(index, `"`+key+`":"model-model.layers.0.mlp.up_proj.weight.safetensors"`) {
			t.Errorf("the index lacks %s", key)
		}
	}
	back, notes, err := recipe.Parse([]byte(want[len(`{"quantization":`) : len(want)-1]))
	p.RuleSet = recipe.RuleSet2
	if d := cmp.Diff(p, back); d != "" || err != nil || len(notes) > 0 {
		t.Errorf("as a recipe: %v, %q\n%s", err, notes, d)
	}
}
