package servertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
)

// CreateInfill creates a model whose vocabulary has tokens for fill-in-the-middle prompts: its last three words are
// Qwen2.5-Coder's.
func CreateInfill(t testing.TB, store *store.Store, name string) {
	t.Helper()
	from, to := filepath.Join(Root(t), "testdata", "models", "demo"), t.TempDir()
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err == nil && f.Name() == "tokenizer.json" {
			b, err = withInfill(b)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, f.Name()), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n, err := manifest.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: to}}}
	if _, err := convert.Create(t.Context(), store, n, file, convert.Options{}); err != nil {
		t.Fatal(err)
	}
}

// withInfill replaces the last words of a tokenizer.json.
func withInfill(b []byte) ([]byte, error) {
	var file map[string]any
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	model := file["model"].(map[string]any)
	vocab := model["vocab"].(map[string]any)
	marks := []string{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}
	first := len(vocab) - len(marks)
	gone := map[string]bool{}
	for word, id := range vocab {
		if at := int(id.(float64)) - first; at >= 0 {
			gone[word] = true
			delete(vocab, word)
			vocab[marks[at]] = id
			file["added_tokens"] = append(file["added_tokens"].([]any), map[string]any{"id": id, "content": marks[at],
				"single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false})
		}
	}
	var merges []any
	for _, m := range model["merges"].([]any) {
		var joined string
		if pair, ok := m.([]any); ok {
			joined = pair[0].(string) + pair[1].(string)
		} else {
			joined = strings.ReplaceAll(m.(string), " ", "")
		}
		if !gone[joined] {
			merges = append(merges, m)
		}
	}
	model["merges"] = merges
	return json.Marshal(file)
}
