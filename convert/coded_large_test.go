package convert

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
)

// largeConfig has tensors of many batches, and rows that are too long to be read whole. Under the race detector they
// are a quarter as long.
const largeConfig = `{
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 256, "hidden_size": 64, ` +
	`"intermediate_size": LENGTH,
  "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
  "tie_word_embeddings": true, "torch_dtype": "bfloat16"QUANTIZATION
}
`

func large(t *testing.T, quantization string) *checkpoint {
	t.Helper()
	length := "70016"
	if runtest.Race && !runtest.Long() {
		length = "17536"
	}
	config := func(more string) string {
		return strings.NewReplacer("LENGTH", length, "QUANTIZATION", more).Replace(largeConfig)
	}
	c := finiteWeights(tiny(t, config(""), 5))
	c.files[source.ConfigName] = config(",\n" + quantization)
	return c
}

// Codes are unchanged and values are exact over many batches, also in long rows.
func TestLargeSources(t *testing.T) {
	const up, down = "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight"
	t.Run("mlx", func(t *testing.T) {
		c := large(t, `  "quantization": {"bits": 3, "group_size": 64}`)
		format := quantize.Int3
		size := format.GroupSizes(quantize.BF16)
		want := map[string]quantize.Blocks{}
		for _, name := range []string{up, down} {
			src := sourceTensor(c, name)
			groups := len(src.data) / size.Source
			b := quantize.Blocks{Packed: make([]byte, groups*size.Packed), Scales: make([]byte, groups*size.Scales),
				Biases: make([]byte, groups*size.Biases)}
			if err := format.Encode(b, src.data, quantize.BF16); err != nil {
				t.Fatal(err)
			}
			want[name] = b
			base, rows, cols := name[:len(name)-len("weight")], src.Shape[0], src.Shape[1]
			c.drop(name)
			c.add("model.safetensors", tensor{safetensors.Tensor{Name: name, DType: safetensors.U32,
				Shape: []int64{rows, cols * 3 / 32}}, b.Packed})
			c.add("model.safetensors", tensor{safetensors.Tensor{Name: base + "scales", DType: safetensors.BF16,
				Shape: []int64{rows, cols / 64}}, b.Scales})
			c.add("model.safetensors", tensor{safetensors.Tensor{Name: base + "biases", DType: safetensors.BF16,
				Shape: []int64{rows, cols / 64}}, b.Biases})
		}
		dir := c.write(t, t.TempDir())
		store := openStore(t)
		mustCreate(t, store, "kept", from(dir), Options{})
		mustCreate(t, store, "floats", from(dir), Options{Precision: recipe.Precision{Type: quantize.ToF32}})
		for name, b := range want {
			_, have := arrays(t, store, mustResolve(t, store, "kept").Image, name)
			for i, part := range [][]byte{b.Packed, b.Scales, b.Biases} {
				if !bytes.Equal(have[i].data, part) {
					t.Errorf("%s: array %d differs", name, i)
				}
			}
			groups := int64(len(b.Scales) / 2)
			b.Scales, b.Biases = encoded(t, quantize.ToF32, b.Scales, quantize.BF16, groups),
				encoded(t, quantize.ToF32, b.Biases, quantize.BF16, groups)
			values := make([]byte, groups*64*4)
			if err := format.Decode(values, quantize.F32, b, quantize.F32); err != nil {
				t.Fatal(err)
			}
			if _, have := arrays(t, store, mustResolve(t, store, "floats").Image, name); !bytes.Equal(have[0].data, values) {
				t.Errorf("%s: values differ", name)
			}
		}
	})
	t.Run("fp8", func(t *testing.T) {
		c := large(t, `  "quantization_config": {"quant_method": "fp8", "weight_block_size": [48, 96]}`)
		rng := rand.New(rand.NewPCG(7, 7))
		want := map[string][]byte{}
		for _, name := range []string{up, down} {
			shape := sourceTensor(c, name).Shape
			codes := random(rng, name, safetensors.F8E4M3, shape...)
			for i := range codes.data {
				codes.data[i] &^= 1 // avoid NaN
			}
			scales := random(rng, name+"_scale_inv", safetensors.F32, (shape[0]+47)/48, (shape[1]+95)/96)
			for i := 3; i < len(scales.data); i += 4 {
				scales.data[i] = 0x3c
			}
			want[name] = bytesOf(blockScales(codes, scales, 48, 96))
			c.drop(name)
			c.add("model.safetensors", codes)
			c.add("model.safetensors", scales)
		}
		dir := c.write(t, t.TempDir())
		store := openStore(t)
		mustCreate(t, store, "x", from(dir), Options{Precision: recipe.Precision{Type: quantize.ToF32}})
		for name, values := range want {
			if _, have := arrays(t, store, mustResolve(t, store, "x").Image, name); !bytes.Equal(have[0].data, values) {
				t.Errorf("%s: values differ", name)
			}
		}
	})
}
