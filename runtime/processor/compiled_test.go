package processor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize/ggml"
	"github.com/ingotml/ingot/runtime/runtimetest"
	"github.com/ingotml/ingot/tokenizer"
)

// vocabularyFile returns a GGUF file with a vocabulary of SentencePiece that is large enough to be compiled.
func vocabularyFile(t *testing.T, model string) string {
	t.Helper()
	tokens, types := []string{"<unk>", "<s>", "</s>"}, []int32{2, 3, 3}
	add := func(kind int32, texts ...string) {
		for _, text := range texts {
			tokens, types = append(tokens, text), append(types, kind)
		}
	}
	if model == "llama" {
		const digits = "0123456789ABCDEF"
		for b := range 256 {
			add(6, "<0x"+string(digits[b>>4])+string(digits[b&15])+">")
		}
	}
	add(4, "<user>", "  ")
	add(1, "▁", "a", "b", "ab", "▁ab", "日", "本", "日本", "1", "2", "12")
	for i := 0; len(tokens) < 16<<10; i++ {
		add(1, "padding-of-the-vocabulary-"+strconv.Itoa(i))
	}
	scores := make([]float32, len(tokens))
	for i := range scores {
		scores[i] = -float32(i)
	}
	f := gguftest.Llama(ggml.Q8_0)
	f.Tensors = slices.DeleteFunc(f.Tensors, func(x gguf.Tensor) bool { return x.Name == "token_embd.weight" })
	f.Add("token_embd.weight", ggml.Q8_0, int64(len(tokens)), gguftest.Hidden)
	f.Set("tokenizer.ggml.model", gguf.Text(model))
	f.Set("tokenizer.ggml.tokens", gguf.Texts(tokens))
	f.Set("tokenizer.ggml.scores", gguf.Floats(scores))
	f.Set("tokenizer.ggml.token_type", gguf.Numbers(types))
	f.Set("tokenizer.ggml.bos_token_id", gguf.Number(1))
	f.Set("tokenizer.ggml.eos_token_id", gguf.Number(2))
	return f.Write(t, "model.gguf")
}

// An image of a GGUF file loads its vocabulary of SentencePiece from the compiled form, with the same ids; a form that
// is damaged is made again.
func TestCompiledSentencePiece(t *testing.T) {
	for _, model := range []string{"llama", "t5"} {
		t.Run(model, func(t *testing.T) {
			cache := t.TempDir()
			t.Setenv("INGOT_CACHE", cache)
			store, entry := converttest.PackFrom(t, vocabularyFile(t, model), "model")
			files := Files{Store: store, Image: entry.Image}
			source, err := files.read(manifest.KindFile, "tokenizer.model")
			if err != nil || source == nil {
				t.Fatalf("no tokenizer.model: %v", err)
			}
			config, err := files.read(manifest.KindFile, "tokenizer_config.json")
			if err != nil {
				t.Fatal(err)
			}
			want, err := tokenizer.LoadSentencePiece(source, config)
			if err != nil {
				t.Fatal(err)
			}
			check := func(when string) {
				t.Helper()
				got, err := files.Tokenizer()
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				for _, text := range []string{"", "ab 日本 12ab", "  <user> a\n\té\x00🙂", "<s>ab</s>",
					"padding-of-the-vocabulary-7"} {
					a, errA := want.Encode(t.Context(), text, true)
					b, errB := got.Encode(t.Context(), text, true)
					if errA != nil || errB != nil || !slices.Equal(a, b) {
						t.Errorf("%s: %q has ids %v, %v; want %v, %v", when, text, b, errB, a, errA)
					}
				}
			}
			check("first")
			forms, err := filepath.Glob(filepath.Join(cache, "tokenizers", "*"))
			if err != nil || len(forms) != 1 {
				t.Fatalf("%d compiled forms: %v", len(forms), err)
			}
			form, err := os.ReadFile(forms[0])
			if err != nil {
				t.Fatal(err)
			}
			// Without the source, only the form can answer.
			layer, _ := entry.Image.Find(manifest.KindFile, "tokenizer.model")
			blob := store.BlobPath(layer.Digest)
			runtimetest.Rewrite(t, blob, []byte("damaged"))
			check("from the form")
			runtimetest.Rewrite(t, blob, source)
			if err := os.WriteFile(forms[0], append(form[:len(form)/2:len(form)/2], "damaged"...), 0o600); err != nil {
				t.Fatal(err)
			}
			check("damaged")
			if again, err := os.ReadFile(forms[0]); err != nil || !slices.Equal(again, form) {
				t.Errorf("the damaged form was not made again: %v", err)
			}
		})
	}
}
