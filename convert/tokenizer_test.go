package convert

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/tokenizer"
)

// An image of a checkpoint whose tokenizer is in other files has them and the tokenizer.json that is made of them.
func TestTokenizerMadeOfOtherFiles(t *testing.T) {
	var ranks, vocab strings.Builder
	for b := range 256 {
		fmt.Fprintf(&ranks, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(b)}), b)
		fmt.Fprintf(&vocab, `,{"rank":%d,"token_bytes":"%s"}`, b, base64.StdEncoding.EncodeToString([]byte{byte(b)}))
	}
	ranks.WriteString("YWI= 256\n")
	tekken := `{"config":{"pattern":"\\p{L}+|[^\\p{L}]+","default_vocab_size":260,"default_num_special_tokens":3,` +
		`"version":"v3"},"vocab":[` + vocab.String()[1:] + `,{"rank":256,"token_bytes":"YWI="}]}`
	for _, c := range []struct {
		name  string
		files map[string]string
		keeps []string
		ids   []int32 // of "ab a"
		other string  // a file that is not of use beside a tokenizer.json
	}{
		{"merges", map[string]string{
			"vocab.json": `{"a":0,"b":1,"Ġ":2,"ab":3,"<|endoftext|>":4}`, "merges.txt": "#version: 0.2\r\na b\r\n",
			"tokenizer_config.json": `{"tokenizer_class":"GPT2Tokenizer"}`,
		}, []string{"vocab.json", "merges.txt"}, []int32{3, 2, 0}, ""},
		{"tekken", map[string]string{"tekken.json": tekken}, []string{"tekken.json"}, []int32{259, 35, 100}, "tekken.json"},
		{"qwen", map[string]string{"qwen.tiktoken": ranks.String()}, []string{"qwen.tiktoken"}, []int32{256, 32, 97},
			"qwen.tiktoken"},
		{"glm4", map[string]string{
			"tokenizer.model": ranks.String(), "tokenizer_config.json": `{"tokenizer_class": "ChatGLM4Tokenizer"}`,
		}, []string{"tokenizer.model"}, []int32{256, 32, 97}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ckpt := tiny(t, tinyConfig, 1)
			for name, data := range c.files {
				ckpt.files[name] = data
			}
			store := openStore(t)
			dir := ckpt.write(t, t.TempDir())
			first := mustCreate(t, store, "x", from(dir), Options{})
			if slices.ContainsFunc(first.Warnings, func(w string) bool { return strings.Contains(w, "token ids only") }) {
				t.Errorf("warnings %q", first.Warnings)
			}
			entry, err := store.Resolve(t.Context(), modelName(t, "x"))
			if err != nil {
				t.Fatal(err)
			}
			file := readLayer(t, store, entry.Image, manifest.KindFile, "tokenizer.json")
			settings := readLayer(t, store, entry.Image, manifest.KindFile, "tokenizer_config.json")
			tok, err := tokenizer.Load([]byte(file), []byte(settings))
			if err != nil {
				t.Fatal(err)
			}
			if ids, err := tok.Encode(t.Context(), "ab a", false); err != nil || !slices.Equal(ids, c.ids) {
				t.Errorf("ids %v (%v), want %v", ids, err, c.ids)
			}
			if _, ok := tok.EOS(); !ok {
				t.Error("there is no EOS")
			}
			for _, name := range c.keeps {
				if readLayer(t, store, entry.Image, manifest.KindFile, name) != c.files[name] {
					t.Errorf("%s differs", name)
				}
			}
			// Beside a tokenizer.json, the files are not read.
			if c.other == "" {
				return
			}
			for name, data := range map[string]string{"tokenizer.json": file, c.other: "damaged"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			mustCreate(t, store, "y", from(dir), Options{})
		})
	}
}

// A tokenizer that cannot be read is a note that says why; a damaged file is an error that names it.
func TestTokenizerNotRead(t *testing.T) {
	ckpt := tiny(t, tinyConfig, 1)
	ckpt.files["vocab.json"], ckpt.files["merges.txt"] = `{"a":0,"b":1,"ab":2}`, "a b\n"
	ckpt.files["tokenizer_config.json"] = `{"tokenizer_class":"MadeUpTokenizer"}`
	store := openStore(t)
	r := mustCreate(t, store, "x", from(ckpt.write(t, t.TempDir())), Options{})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "MadeUpTokenizer") ||
		!strings.Contains(r.Warnings[0], "save_pretrained") || !strings.Contains(r.Warnings[0], "token ids only") {
		t.Errorf("warnings %q", r.Warnings)
	}
	ckpt.files["tokenizer_config.json"], ckpt.files["merges.txt"] = `{"tokenizer_class":"GPT2Tokenizer"}`, "a c\n"
	_, err := Create(t.Context(), store, modelName(t, "x"), from(ckpt.write(t, t.TempDir())), Options{})
	if err == nil || !strings.Contains(err.Error(), `merges.txt: line 1 is "a c", but "c" is not in vocab.json`) {
		t.Errorf("got %v", err)
	}
}
