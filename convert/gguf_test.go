package convert

import (
	"encoding/binary"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/quantize/recipe"
)

// ggufs are files that llama.cpp's converter made of checkpoints (testdata/gen/ggml/models.py).
var ggufs = slices.Concat(plainGGUFs, []string{
	"gemma3-published", "gemma4-26b-a4b", "gemma4-e2b", "glm4_moe-published", "llama-bias",
	"llama-rope-llama3", "llama4-published", "afmoe-published", "gpt_oss-published", "phimoe-published",
	"qwen3-default", "qwen3_5-published", "qwen3_5_moe-published", "qwen3_moe-default",
	"gemma3n-published", "qwen3_5_moe-next-sparse", "kimi_linear-published", "rwkv7-published",
	"falcon_h1-gate_first", "granitemoehybrid-published", "lfm2_moe-published", "mimo_v2_flash-published",
	"nemotron_h-published",
})

// plainGGUFs are those of plain decoders, whose whole configuration comes back.
var plainGGUFs = []string{
	"apertus-saved", "arcee-saved", "cohere-published", "cohere2-published", "ernie4_5-published", "exaone4-published",
	"gemma-published", "gemma2-saved", "glm4-saved", "granite-published", "hunyuan_v1_dense-saved", "nemotron-saved",
	"olmo-published", "olmo2-saved", "olmo3-saved", "phi3-published", "qwen2-saved", "seed_oss-published",
	"smollm3-published", "stablelm-published", "starcoder2-published", "gpt2-published", "gpt_neox-published",
	"dots1-published", "ernie4_5_moe-published", "granitemoe-published", "minimax_m2-published", "mixtral-published",
	"olmoe-published", "qwen2_moe-published", "cohere2_moe-published", "exaone_moe-saved", "hunyuan_v1_moe-saved",
	"deepseek_v2-published", "deepseek_v3-published", "deepseek_v32-published", "glm_moe_dsa-published",
	"glm4_moe_lite-published", "minicpm3-published",
	"youtu-published", "mamba-published", "mamba2-published", "bamba-published", "jamba-published", "laguna-published",
	"lfm2-published",
}

// headless are those without the checkpoint's multi-token prediction head, which the converter leaves out.
var headless = []string{
	"deepseek_v3-published", "glm4_moe_lite-published", "glm4_moe-published", "mimo_v2_flash-published",
}

// multiplied are those whose weights the converter multiplies. endless are those that say another context.
var (
	multiplied = []string{"falcon_h1-gate_first"}
	endless    = []string{"granitemoehybrid-published", "nemotron_h-published", "rwkv7-published"}
)

// A GGUF file has the tensors of the checkpoint that it was made of, bit for bit, except for logarithms. The shape of
// the model is the same too.
func TestGGUFSameAsSafetensors(t *testing.T) {
	for _, name := range runtest.Sample(ggufs) {
		t.Run(name, func(t *testing.T) {
			file, folder := filepath.Join("testdata", "gguf", name+".gguf"), filepath.Join("..", "testdata", "models", name)
			st, opts := openStore(t), Options{Precision: recipe.Precision{Type: quantize.ToF32, Uniform: true}}
			mustCreate(t, st, "gguf", from(file), opts)
			mustCreate(t, st, "folder", from(folder), opts)
			got, want := allElements(t, st, "gguf"), allElements(t, st, "folder")
			// The converter fills them up with zeros.
			const perLayer = "model.embed_tokens_per_layer.weight"
			if n := len(want[perLayer]); name == "gemma3n-published" && n < len(got[perLayer]) {
				if slices.ContainsFunc(got[perLayer][n:], func(x float32) bool { return x != 0 }) {
					t.Errorf("%s does not end in zeros", perLayer)
				}
				got[perLayer] = got[perLayer][:n]
			}
			a, b := detect(t, st, "gguf"), detect(t, st, "folder")
			if slices.Contains(headless, name) {
				table := b.Table()
				maps.DeleteFunc(want, func(tensor string, _ []float32) bool { return table.PartOf(tensor) == "mtp" })
			}
			for tensor, list := range want {
				bound := 0.0
				if strings.HasSuffix(tensor, ".A_log") { // the file has its exponential
					bound = 1e-6
				}
				same := slices.EqualFunc(got[tensor], list, func(a, b float32) bool {
					return slices.Contains(multiplied, name) || math.Abs(float64(a)-float64(b)) <= bound*(1+math.Abs(float64(b)))
				})
				if !same {
					t.Errorf("%s: %d elements, want %d, or others", tensor, len(got[tensor]), len(list))
				}
			}
			if len(got) != len(want) || len(got) < 10 {
				t.Errorf("%d tensors, want %d", len(got), len(want))
			}
			fa, fb := a.Facts(), b.Facts()
			fa.Architecture, fb.Architecture, fa.DType, fb.DType = "", "", "", ""
			fa.Params, fb.Params = 0, 0 // which count the vision tower
			if slices.Contains(endless, name) {
				fa.Context = fb.Context
			}
			if diff := cmp.Diff(fb, fa); diff != "" {
				t.Error(diff)
			}
			// A GGUF file cannot say which layers of gemma3 or afmoe have windows, nor the size of llama4's chunks, and does not
			// say so for the others, nor of qwen2's llama3 rope.
			unsaid := []string{"afmoe-published", "gemma3-published", "llama4-published", "qwen2-saved", "starcoder2-published"}
			if slices.Contains(unsaid, name) {
				return
			}
			if diff := cmp.Diff(b.State(), a.State()); diff != "" {
				t.Error(diff)
			}
			if !slices.Contains(plainGGUFs, name) {
				return
			}
			if diff := cmp.Diff(b, a, cmpopts.EquateApprox(1e-6, 0), cmpopts.EquateEmpty(),
				cmpopts.IgnoreFields(config.Common{}, "Architecture", "DType", "BOS", "EOS"),
				cmpopts.IgnoreFields(config.LatentDecoder{}, "NextLayers"),
				// deepseek2 has mscale_all_dim only; published models have the same mscale.
				cmpopts.IgnoreFields(config.Rope{}, "MScale")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// allElements reads the elements of an image of float32, by canonical name.
func allElements(t *testing.T, st *store.Store, name string) map[string][]float32 {
	t.Helper()
	src := openImage(t, st, name)
	defer src.Close()
	all := map[string][]float32{}
	for _, w := range src.Tensors() {
		if strings.HasPrefix(w.Name, "model.visual.") {
			continue // GGUF files have the text model alone
		}
		n := int64(1)
		for _, d := range w.Shape {
			n *= d
		}
		raw, out := make([]byte, 4*n), make([]float32, n)
		if err := w.Elements().Floats(raw, 0, int64(len(out))); err != nil {
			t.Fatal(err)
		}
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
		// A text model alone has another prefix than one in a multimodal checkpoint.
		all[strings.Replace(w.Name, "model.language_model.", "model.", 1)] = out
	}
	return all
}

func openImage(t *testing.T, st *store.Store, name string) *source.Source {
	t.Helper()
	entry, err := st.Resolve(t.Context(), modelName(t, name))
	if err != nil {
		t.Fatal(err)
	}
	src, err := source.OpenImage(t.Context(), st, entry, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// A file and a folder with nothing else are the same source. The plan says what becomes of each type.
func TestGGUFPlan(t *testing.T) {
	for _, c := range []struct {
		kind  ggml.Type
		exact bool
		want  string
	}{
		{ggml.Q4_1, false, "int4-g32"}, {ggml.Q8_0, false, "int8-g32"}, {ggml.NVFP4, false, "nvfp4"},
		{ggml.Q4_K, true, "int4-g32"}, {ggml.Q6_K, false, "f16"}, {ggml.Q6_K, true, "f32"}, {ggml.BF16, false, "bf16"},
	} {
		path := gguftest.Llama(c.kind).Write(t, "x.gguf")
		for _, place := range []string{path, filepath.Dir(path)} {
			plan, err := DryRun(t.Context(), nil, from(place), Options{Exact: c.exact})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"mlp.up_proj", "self_attn.q_proj"} {
				if got := typesOf(plan)["model.layers.0."+name+".weight"]; got != c.want {
					t.Errorf("%v, exact %v: %s becomes %s, want %s", c.kind, c.exact, name, got, c.want)
				}
			}
		}
	}
	st := openStore(t)
	path := gguftest.Llama(ggml.Q4_K).Write(t, "x.gguf")
	rounded := mustCreate(t, st, "rounded", from(path), Options{})
	exact := mustCreate(t, st, "exact", from(path), Options{Exact: true})
	isRounded := func(w string) bool { return strings.Contains(w, "rounded to float16; the largest error") }
	if !slices.ContainsFunc(rounded.Warnings, isRounded) || slices.ContainsFunc(exact.Warnings, isRounded) {
		t.Errorf("%q, exact %q", rounded.Warnings, exact.Warnings)
	}
}

func detect(t *testing.T, st *store.Store, name string) arch.Model {
	t.Helper()
	src := openImage(t, st, name)
	defer src.Close()
	return src.Model
}
