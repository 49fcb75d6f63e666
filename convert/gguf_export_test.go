package convert

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mapping "github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/convert/export"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/quantize/recipe"
)

func exportGGUF(t *testing.T, st *store.Store, name, kind string) (string, export.Result, error) {
	t.Helper()
	entry, err := st.Resolve(t.Context(), modelName(t, name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name+".gguf")
	r, err := export.GGUF(t.Context(), st, entry, path, export.GGUFOptions{Type: kind})
	return path, r, err
}

// ggufData reads a file: the bytes of each tensor.
func ggufData(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := gguf.Read(strings.NewReader(string(data)), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, x := range h.Tensors {
		out[x.Name] = x.Type.String() + string(data[x.Offset:x.Offset+x.Size])
	}
	return out
}

// A file that was imported and is exported again has the same tensors, bit for bit.
func TestGGUFRoundTrip(t *testing.T) {
	var files []string
	for _, kind := range []ggml.Type{
		ggml.Q4_0, ggml.Q4_1, ggml.Q5_0, ggml.Q5_1, ggml.Q8_0, ggml.MXFP4, ggml.NVFP4, ggml.F16, ggml.BF16,
	} {
		files = append(files, gguftest.Llama(kind).Write(t, kind.String()+".gguf"))
	}
	for _, name := range []string{
		"gemma3-published", "llama-bias", "llama-rope-llama3", "qwen3-default", "qwen3_moe-default",
	} {
		files = append(files, filepath.Join("testdata", "gguf", name+".gguf"))
	}
	for _, file := range runtest.Sample(files) {
		st := openStore(t)
		mustCreate(t, st, "m", from(file), Options{})
		path, _, err := exportGGUF(t, st, "m", "source")
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got, want := ggufData(t, path), ggufData(t, file)
		for name, data := range want {
			if strings.HasPrefix(filepath.Base(file), "NVFP4") && got[name] == "" ||
				!strings.HasPrefix(filepath.Base(file), "NVFP4") && got[name] != data {
				t.Errorf("%s: %s differs: %.6q, want %.6q", file, name, got[name], data)
			}
		}
		again := mustCreate(t, st, "again", from(path), Options{})
		if len(got) != len(want) || again.Tensors < 10 {
			t.Errorf("%s: %d tensors, want %d", file, len(got), len(want))
		}
		a, b := allElements32(t, st, file), allElements32(t, st, path)
		for name, list := range a {
			if !slices.Equal(b[name], list) {
				t.Errorf("%s: the elements of %s differ", file, name)
			}
		}
	}
}

// unwritable are checkpoints that llama.cpp does not run, though its converter writes them, and why.
var unwritable = map[string]string{
	"afmoe-published":        "has a full layer, without rope, after every three sliding ones",
	"arcee-saved":            "has no bias of attention's output",
	"deepseek_v2-published":  "has yarn with beta_fast 32 and beta_slow 1",
	"deepseek_v3-published":  "has yarn with beta_fast 32 and beta_slow 1",
	"gpt_oss-published":      "has yarn with beta_fast 32 and beta_slow 1",
	"phimoe-published":       "has biases",
	"apertus-saved":          "has no bias of attention's output",
	"llama4-published":       "has experts in all layers after the dense ones",
	"bamba-published":        "rotates all channels of a head",
	"falcon_h1-gate_first":   "cannot be this model: SSM.Multipliers is [1 1 1 1 1] there",
	"lfm2_moe-published":     "cannot be this model: Mixture.Router.Scaling is 1 there, and 1.3 in the model",
	"nemotron_h-published":   "cannot be this model: SSM.MinStep is 0.001 there, and 0.15 in the model",
	"minicpm3-published":     "cannot be written as GGUF",
	"gemma3n-published":      "cannot be written as GGUF",
	"kimi_linear-published":  "cannot be written as GGUF",
	"rwkv7-published":        "cannot be written as GGUF",
	"dots1-published":        "has as many key heads as query heads",
	"exaone4-published":      "has windows in a model of 64 layers only",
	"exaone_moe-saved":       "has experts in all layers after the dense ones",
	"gemma2-saved":           "has no bias of attention's output",
	"hunyuan_v1_dense-saved": "has no bias of attention's output",
	"hunyuan_v1_moe-saved":   "has no bias of attention's output",
	"nemotron-saved":         "has heads of hidden_size/num_attention_heads",
	"olmo2-saved":            "has no bias of attention's output",
	"olmo3-saved":            "has no bias of attention's output",
	"qwen2-saved":            "cannot be this model: Rope.Type is default there, and llama3 in the model",
}

// A checkpoint is exported as llama.cpp's converter writes it, bit for bit. Layers that predict further tokens, which
// are after the last one, are not exported.
func TestGGUFExportAsConverter(t *testing.T) {
	next := map[string]int{
		"gemma3-published": 4, "glm4_moe-published": 2, "glm4_moe_lite-published": 2, "qwen3_5-published": 4,
		"qwen3_5_moe-published": 4, "mimo_v2_flash-published": 3,
	}
	for _, name := range runtest.Sample(ggufs) {
		if strings.HasPrefix(name, "gemma4-") {
			continue // with gate and up in two tensors, and without the keys of layers that share others
		}
		if name == "qwen3_5_moe-next-sparse" {
			continue // it becomes a qwen35moe: see TestGGUFExportNext
		}
		st := openStore(t)
		mustCreate(t, st, "m", from(filepath.Join("..", "testdata", "models", name)), Options{})
		path, _, err := exportGGUF(t, st, "m", "")
		if why, ok := unwritable[name]; ok {
			if !errors.Is(err, export.ErrExport) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v, want %s", name, err, why)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, want := ggufData(t, path), ggufData(t, filepath.Join("testdata", "gguf", name+".gguf"))
		maps.DeleteFunc(want, func(tensor, _ string) bool {
			var layer int
			after, ok := next[name]
			_, err := fmt.Sscanf(tensor, "blk.%d.", &layer)
			return ok && err == nil && layer >= after
		})
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for tensor, data := range want {
			computed := tensor == "rope_freqs.weight" || strings.HasSuffix(tensor, ".ssm_a") // here in float64
			if got[tensor] != data && !computed {
				t.Errorf("%s: %s differs: %.6q, want %.6q", name, tensor, got[tensor], data)
			}
		}
	}
}

// Qwen3-Next is exported as Qwen 3.5, with the same elements in another order and without the head for further tokens.
func TestGGUFExportNext(t *testing.T) {
	st, folder := openStore(t), filepath.Join("..", "testdata", "models", "qwen3_5_moe-next-sparse")
	mustCreate(t, st, "m", from(folder), Options{})
	path, _, err := exportGGUF(t, st, "m", "")
	if err != nil {
		t.Fatal(err)
	}
	got, want := allElements32(t, st, path), allElements32(t, st, folder)
	if len(got) < 50 {
		t.Errorf("%d tensors", len(got))
	}
	for name, list := range got {
		same := slices.EqualFunc(list, want[name], func(a, b float32) bool {
			return a == b || strings.HasSuffix(name, ".A_log") && math.Abs(float64(a-b)) <= 1e-6*(1+math.Abs(float64(b)))
		})
		if !same {
			t.Errorf("the elements of %s differ", name)
		}
	}
}

// allElements32 imports a file as float32 and returns its elements.
func allElements32(t *testing.T, st *store.Store, file string) map[string][]float32 {
	t.Helper()
	mustCreate(t, st, "f32", from(file), Options{Precision: recipe.Precision{Type: quantize.ToF32, Uniform: true}})
	return allElements(t, st, "f32")
}

// Each type is that of the matrices. Vectors are float32.
func TestGGUFExportTypes(t *testing.T) {
	st := openStore(t)
	mustCreate(t, st, "m", from(gguftest.Llama(ggml.BF16).Write(t, "x.gguf")), Options{})
	for _, kind := range runtest.Sample(export.GGUFTypes[1:]) {
		path, r, err := exportGGUF(t, st, "m", strings.ToLower(kind))
		if err != nil || r.Bytes == 0 {
			t.Errorf("%s: %+v, %v", kind, r, err)
			continue
		}
		data := ggufData(t, path)
		for name, want := range map[string]string{
			"blk.0.attn_q.weight": kind, "blk.0.ffn_down.weight": kind, "output_norm.weight": "F32",
			"token_embd.weight": strings.NewReplacer("MXFP4", "Q8_0", "Q4_0", "Q8_0", "Q4_1", "Q8_0").Replace(kind),
		} {
			if !strings.HasPrefix(data[name], want) {
				t.Errorf("%s: %s is %.6q", kind, name, data[name])
			}
		}
		mustCreate(t, st, "again", from(path), Options{})
	}
	if _, _, err := exportGGUF(t, st, "m", "Q2_K"); !errors.Is(err, export.ErrExport) {
		t.Error(err)
	}
	mustCreate(t, st, "int3", from(gguftest.Llama(ggml.BF16).Write(t, "x.gguf")),
		Options{Precision: recipe.Precision{Type: quantize.Int3, Uniform: true}})
	if _, r, err := exportGGUF(t, st, "int3", ""); err != nil || len(r.Notes) != 1 ||
		!strings.Contains(r.Notes[0], "no type of GGUF holds the codes of") {
		t.Errorf("%q, %v", r.Notes, err)
	}
}

// What cannot be written is refused, and no file is replaced.
func TestGGUFExportRefused(t *testing.T) {
	st := openStore(t)
	mustCreate(t, st, "helium", from(filepath.Join("..", "testdata", "models", "helium-saved")), Options{})
	if _, _, err := exportGGUF(t, st, "helium", ""); !errors.Is(err, export.ErrExport) ||
		!errors.Is(err, mapping.ErrMetadata) {
		t.Error(err)
	}
	mustCreate(t, st, "m", from(gguftest.Llama(ggml.F16).Write(t, "x.gguf")), Options{})
	entry, err := st.Resolve(t.Context(), modelName(t, "m"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kept.gguf")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = export.GGUF(t.Context(), st, entry, path, export.GGUFOptions{})
	if data, _ := os.ReadFile(path); !errors.Is(err, export.ErrExport) || string(data) != "mine" {
		t.Errorf("%v; the file is %q", err, data)
	}
}

// A vocabulary of SentencePiece, which an import keeps as tokenizer.model, is exported as it was.
func TestGGUFExportVocabulary(t *testing.T) {
	tokens, types := []string{"<unk>", "<s>", "</s>", "▁", "▁a", "b", "<x>"}, []int32{2, 3, 3, 1, 1, 1, 4}
	scores := []float32{0, 0, 0, -3, -1.5, -2, 0}
	for i := len(tokens); i < gguftest.Vocab; i++ {
		tokens, types, scores = append(tokens, string(rune('A'+i))), append(types, 1), append(scores, -float32(i))
	}
	f := gguftest.Llama(ggml.Q8_0)
	for key, v := range map[string]gguf.Value{
		"model": gguf.Text("t5"), "tokens": gguf.Texts(tokens), "token_type": gguf.Numbers(types),
		"scores": gguf.Floats(scores), "bos_token_id": gguf.Number(1), "eos_token_id": gguf.Number(2),
		"unknown_token_id": gguf.Number(0), "add_bos_token": gguf.Flag(true), "add_eos_token": gguf.Flag(false),
	} {
		f.Set("tokenizer.ggml."+key, v)
	}
	st := openStore(t)
	mustCreate(t, st, "m", from(f.Write(t, "m.gguf")), Options{})
	path, _, err := exportGGUF(t, st, "m", "source")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := gguf.Read(strings.NewReader(string(data)), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := h.Metadata.Texts("tokenizer.ggml.tokens"); err != nil || !slices.Equal(got, tokens) {
		t.Errorf("tokens %q, %v", got, err)
	}
	for key, want := range map[string]any{
		"model": "t5", "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0, "add_bos_token": true,
		"add_eos_token": false, "add_space_prefix": true, "remove_extra_whitespaces": true,
	} {
		v, ok := h.Metadata.Lookup("tokenizer.ggml." + key)
		if got := v.Plain(); !ok || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	for i := range tokens {
		kinds, _ := h.Metadata.Lookup("tokenizer.ggml.token_type")
		numbers, _ := h.Metadata.Lookup("tokenizer.ggml.scores")
		kind, _ := kinds.Int(i)
		score, _ := numbers.Float(i)
		if kind != int64(types[i]) || float32(score) != scores[i] {
			t.Errorf("token %d is of type %d with %v, want %d with %v", i, kind, score, types[i], scores[i])
		}
	}
}
