package convert

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
)

// published reads a folder of testdata/sources.
func published(t *testing.T, name string) *checkpoint {
	t.Helper()
	dir := filepath.Join("..", "testdata", "sources", name)
	c := &checkpoint{files: map[string]string{}, tensors: map[string][]tensor{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.Name() == "reference.safetensors":
		case filepath.Ext(e.Name()) == ".safetensors":
			f, err := safetensors.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, tn := range f.Header().Tensors {
				data, err := io.ReadAll(f.Reader(tn))
				if err != nil {
					t.Fatal(err)
				}
				c.add(e.Name(), tensor{tn, data})
			}
			f.Close()
		default:
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c.files[e.Name()] = string(data)
		}
	}
	return c
}

// perBank interleaves tensors: for each of the banks, the rows of every part in turn.
func perBank(banks int, parts ...[]byte) []byte {
	var out []byte
	for b := range banks {
		for _, p := range parts {
			n := len(p) / banks
			out = append(out, p[b*n:(b+1)*n]...)
		}
	}
	return out
}

// Codes packed by mlx-lm are in the image byte for byte. Experts are fused without changing codes.
func TestMLXCodesAreKept(t *testing.T) {
	for _, name := range runtest.Sample(fixtures(t, "mlx-*")) {
		t.Run(name, func(t *testing.T) {
			c := published(t, name)
			store := openStore(t)
			mustCreate(t, store, "x", from(c.write(t, t.TempDir())), Options{})
			entry := mustResolve(t, store, "x")
			checked := 0
			for _, l := range entry.Image.Layers {
				if l.Kind != manifest.KindTensor {
					continue
				}
				meta, have := arrays(t, store, entry.Image, l.Name)
				if meta[blob.MetaType] == "" {
					continue
				}
				if meta[blob.MetaRule] != "" {
					t.Errorf("%s: the blob says that %s made the codes, which nobody knows", l.Name, meta[blob.MetaRule])
				}
				for i, suffix := range []string{".weight", ".scales", ".biases"}[:len(have)] {
					var want []byte
					if tn := mlxSource(c, l.Name, suffix); tn.data != nil {
						want = tn.data
					} else if base, part, ok := strings.Cut(l.Name, ".linear_attn.in_proj_"); ok {
						want = gatedDeltaRows(c, base+".linear_attn.in_proj_", part, suffix)
					} else {
						base := strings.TrimSuffix(l.Name, "gate_up_proj")
						gate, up := mlxSource(c, base+"gate_proj", suffix), mlxSource(c, base+"up_proj", suffix)
						if gate.data == nil || up.data == nil {
							t.Fatalf("%s: no source", l.Name)
						}
						want = perBank(int(gate.Shape[0]), gate.data, up.data)
					}
					if !bytes.Equal(have[i].data, want) {
						t.Errorf("%s: %s differs from the source", l.Name, suffix)
					}
				}
				checked++
			}
			packed := 0
			for _, list := range c.tensors {
				for _, tn := range list {
					// Gate and up are fused into one blob. The two parts of kv_b_proj are dequantized.
					apart := []string{".switch_mlp.up_proj.scales", ".switch_glu.up_proj.scales", ".embed_q.scales",
						".unembed_out.scales"}
					if strings.HasSuffix(tn.Name, ".scales") && !slices.ContainsFunc(apart,
						func(s string) bool { return strings.HasSuffix(tn.Name, s) }) {
						packed++
					}
				}
			}
			if strings.HasSuffix(name, "qwen3_next") {
				packed += 2 * 3 // three layers have four projections in the image, but two in the source
			}
			if checked != packed {
				t.Errorf("%d packed blobs, the source has %d", checked, packed)
			}
			config := readLayer(t, store, entry.Image, manifest.KindFile, source.ConfigName)
			if !json.Valid([]byte(config)) || strings.Contains(config, `"quantization`) {
				t.Errorf("config.json of the image: %s", config)
			}
		})
	}
}

func fixtures(t *testing.T, pattern string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("..", "testdata", "sources", pattern, source.ConfigName))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no folders %s: %v", pattern, err)
	}
	var names []string
	for _, d := range dirs {
		names = append(names, filepath.Base(filepath.Dir(d)))
	}
	return names
}

// gatedDeltaRows extracts the rows of one of four projections from Qwen3-Next's two fused ones, which are ordered by
// key head. The fixture has 2 key heads, each with 16 rows of queries, 16 of keys, and two value heads with 16 rows of
// values and of gates.
func gatedDeltaRows(c *checkpoint, base, part, suffix string) []byte {
	parts := map[string]struct {
		from string
		rows [][2]int // per key head
	}{
		"qkv.weight": {"qkvz", [][2]int{{0, 16}, {16, 32}, {32, 64}}}, "z.weight": {"qkvz", [][2]int{{64, 96}}},
		"b.weight": {"ba", [][2]int{{0, 2}}}, "a.weight": {"ba", [][2]int{{2, 4}}},
	}[part]
	tn := sourceTensor(c, base+parts.from+suffix)
	row := len(tn.data) / int(tn.Shape[0])
	var out []byte
	for _, r := range parts.rows {
		for head := range 2 {
			begin := head * int(tn.Shape[0]) / 2
			out = append(out, tn.data[(begin+r[0])*row:(begin+r[1])*row]...)
		}
	}
	return out
}

// mlxSource finds an array of a tensor under one of mlx-lm's names.
func mlxSource(c *checkpoint, name, suffix string) tensor {
	base := strings.TrimSuffix(name, ".weight")
	for _, prefix := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.Replace(s, "model.language_model.", "language_model.model.", 1) },
		func(s string) string { return "language_model." + s },
	} {
		for _, experts := range []string{".mlp.experts.", ".mlp.switch_mlp.", ".experts.switch_glu."} {
			at := strings.Replace(prefix(base), ".mlp.experts.", experts, 1)
			if experts == ".experts.switch_glu." {
				at = strings.Replace(prefix(base), ".experts.", experts, 1)
			}
			if tn := sourceTensor(c, at+suffix); tn.data != nil {
				return tn
			}
		}
	}
	return tensor{}
}

// blockScales is a reference dequantization of an 8-bit float weight with float32 block scales.
func blockScales(codes, scales tensor, bh, bw int64) []float32 {
	rows, cols := codes.Shape[0], codes.Shape[1]
	across := (cols + bw - 1) / bw
	out := make([]float32, rows*cols)
	for r := range rows {
		for c := range cols {
			at := 4 * (r/bh*across + c/bw)
			s := scales.data[at : at+4]
			scale := math.Float32frombits(uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24)
			b := codes.data[r*cols+c]
			exp, man := int(b>>3&15), float64(b&7)
			v := math.Ldexp(man, -9)
			if exp > 0 {
				v = math.Ldexp(8+man, exp-10)
			}
			if b >= 128 {
				v = -v
			}
			out[r*cols+c] = float32(v) * scale
		}
	}
	return out
}

func bytesOf(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b := math.Float32bits(f)
		out = append(out, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
	}
	return out
}

// An FP8 weight whose scales are not powers of two is dequantized in float32 and rounded once to the target.
func TestFP8IsDequantizedOnce(t *testing.T) {
	const name = "model.layers.1.mlp.down_proj.weight"
	c := published(t, "fp8-block")
	values := bytesOf(blockScales(sourceTensor(c, name), sourceTensor(c, name+"_scale_inv"), 32, 32))
	n := int64(len(values) / 4)
	for _, requested := range []quantize.Type{0, quantize.ToBF16, quantize.ToF32, quantize.ToF16} {
		store := openStore(t)
		mustCreate(t, store, "x", from(c.write(t, t.TempDir())), Options{Precision: recipe.Precision{Type: requested}})
		_, have := arrays(t, store, mustResolve(t, store, "x").Image, name)
		to := requested
		if requested == 0 {
			to = quantize.ToBF16
		}
		if !bytes.Equal(have[0].data, encoded(t, to, values, quantize.F32, n)) {
			t.Errorf("asked for %q: other elements", requested)
		}
	}
	store := openStore(t)
	mustCreate(t, store, "x", from(c.write(t, t.TempDir())),
		Options{Precision: recipe.Precision{Type: quantize.Int4, Uniform: true}})
	_, have := arrays(t, store, mustResolve(t, store, "x").Image, name)
	groups := int(n) / quantize.Int4.Group()
	want := quantize.Int4.NewBlocks(quantize.F32, groups)
	if err := quantize.Int4.Encode(want, values, quantize.F32); err != nil {
		t.Fatal(err)
	}
	for i, w := range [][]byte{want.Packed, encoded(t, quantize.ToBF16, want.Scales, quantize.F32, int64(groups)),
		encoded(t, quantize.ToBF16, want.Biases, quantize.F32, int64(groups))} {
		if !bytes.Equal(have[i].data, w) {
			t.Errorf("int4: array %d differs", i)
		}
	}
	if have[1].DType != safetensors.BF16 {
		t.Errorf("scales of type %s", have[1].DType)
	}
}

// FP8 codes with power-of-two scales are kept as mxfp8.
func TestFP8PowersOfTwoAreKept(t *testing.T) {
	for _, c := range []struct{ folder, tensor, scale string }{
		{"fp8-block-powers", "model.layers.1.mlp.down_proj.weight", "_scale_inv"},
		{"fp8-block-e8m0", "model.layers.0.self_attn.q_proj.weight", "_scale_inv"},
		{"fp8-experts-stacked", "model.layers.1.mlp.experts.gate_up_proj", "_scale_inv"},
	} {
		ck := published(t, c.folder)
		for _, requested := range []quantize.Type{0, quantize.MXFP8} {
			store := openStore(t)
			mustCreate(t, store, "x", from(ck.write(t, t.TempDir())), Options{Precision: recipe.Precision{Type: requested}})
			meta, have := arrays(t, store, mustResolve(t, store, "x").Image, c.tensor)
			codes, scales := sourceTensor(ck, c.tensor), sourceTensor(ck, c.tensor+c.scale)
			if meta[blob.MetaType] != "mxfp8" || !bytes.Equal(have[0].data, codes.data) {
				t.Errorf("%s, asked for %q: %v, codes differ", c.folder, requested, meta)
				continue
			}
			// A block's exponent is repeated for every 32 elements of its rows.
			last := len(codes.Shape) - 1
			rows, cols := codes.Shape[last-1], codes.Shape[last]
			down, across := scales.Shape[last-1], scales.Shape[last]
			bh, bw := (rows+down-1)/down, (cols+across-1)/across
			for g, got := range have[1].data {
				row, col := int64(g)/(cols/32), int64(g)%(cols/32)*32
				at := row/rows*down*across + row%rows/bh*across + col/bw
				want := scales.data[at*int64(scales.DType.Bits()/8):]
				exponent := want[0]
				if scales.DType == safetensors.F32 {
					exponent = want[3]<<1 | want[2]>>7
				}
				if got != exponent {
					t.Fatalf("%s: scale %d is %d, want %d", c.folder, g, got, exponent)
				}
			}
		}
	}
}

// The plan lists what was recognized, with the keys and tensors that revealed it.
func TestRecognized(t *testing.T) {
	for _, c := range []struct {
		folder string
		want   []packed.Recognized
	}{
		{"mlx-experts", []packed.Recognized{
			{
				Kind: "mlx", What: "MLX: 4 bits in groups of 32",
				From: []string{
					"config.json quantization: bits 4, group_size 32, mode affine",
					`config.json quantization."model.layers.0.mlp.gate" = {"group_size":64,"bits":8}`,
				},
			},
			{Kind: "layout", What: `text under "model."`, From: []string{"model.embed_tokens.weight"}},
			{
				Kind: "layout", What: "model.layers.*.mlp.experts: stacked",
				From: []string{"model.layers.0.mlp.switch_mlp.gate_proj.weight"},
			},
		}},
		{"fp8-block", []packed.Recognized{{Kind: "fp8", What: "fp8 e4m3, blocks of 32 x 32 (21)", From: []string{
			`config.json quantization_config.quant_method = "fp8"`,
			"config.json quantization_config.weight_block_size = [32 32]",
			"model.layers.0.mlp.down_proj.weight (F8_E4M3 [64 128]) with model.layers.0.mlp.down_proj.weight_scale_inv " +
				"(F32 [2 4])",
		}}}},
		{
			"fp8-ct-channel",
			[]packed.Recognized{
				{
					Kind: "fp8", What: "fp8 e4m3, a scale per row (21)",
					From: []string{`config.json quantization_config.format = "float-quantized"`},
				},
			},
		},
		{
			"fp8-modelopt",
			[]packed.Recognized{
				{
					Kind: "fp8", What: "fp8 e4m3, a scale per tensor (21)",
					From: []string{`config.json quantization_config.quant_algo = "FP8"`},
				},
			},
		},
	} {
		p, err := planOf(t, published(t, c.folder), recipe.Precision{})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			i := slices.IndexFunc(p.Recognized,
				func(r packed.Recognized) bool { return r.Kind == want.Kind && strings.HasPrefix(r.What, want.What) })
			if i < 0 {
				t.Errorf("%s: recognized %+v, want %s", c.folder, p.Recognized, want.What)
				continue
			}
			for _, from := range want.From {
				if got := p.Recognized[i].From; !slices.Contains(got, from) {
					t.Errorf("%s: %s from %q, want %q", c.folder, want.What, got, from)
				}
			}
		}
	}
	// Tensors that the engine does not need are dropped and listed.
	p, err := planOf(t, published(t, "fp8-ct-tensor"), recipe.Precision{})
	if err != nil {
		t.Fatal(err)
	}
	var dropped []string
	for _, d := range p.Dropped {
		dropped = append(dropped, d.Name)
	}
	for _, name := range []string{"model.layers.0.mlp.up_proj.input_scale", "model.layers.2.self_attn.k_scale"} {
		if !slices.Contains(dropped, name) {
			t.Errorf("left out %q, not %s", dropped, name)
		}
	}
}
