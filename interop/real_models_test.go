package interop

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRealModels checks ingot with published models from GGUF files beside transformers and llama.cpp.
func TestRealModels(t *testing.T) {
	for _, c := range []struct {
		name     string
		rows     int      // of the logits that transformers computed
		maxLogit float64  // largest difference of a logit from transformers', 5 times the measured one
		template string   // of a model that was not trained to chat
		differs  []string // parts of texts that llama.cpp does not tokenize as the publisher does
		long     bool
	}{
		{
			name: "gemma3", rows: 2, maxLogit: 2e-4, differs: gemmaDiffers,
			template: "{% for m in messages %}{{ m.content }}\n{% endfor %}",
		},
		{name: "qwen2.5-coder-0.5b", rows: 3, maxLogit: 2e-4, differs: qwenDiffers, long: true},
		{name: "qwen2.5-coder-1.5b", rows: 3, maxLogit: 2e-4, differs: qwenDiffers, long: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("is a part of the long form")
			}
			file := realFile(t, c.name)
			u := newUser(t)
			u.more = []string{"INGOT_ENGINE=" + engine(t)}
			golden := readReal[realGolden](t, "real", c.name+".json")
			if len(golden.Prompts) != 4 {
				t.Fatalf("the golden has %d prompts", len(golden.Prompts))
			}
			// --exact: what is compared is the arithmetic, not the rounding of scales.
			u.ingot("create", "exact", file, "--exact")
			u.ingot("create", "real", file)
			t.Run("logits", func(t *testing.T) { testRealLogits(t, u, "exact", c.name, c.rows, c.maxLogit) })
			t.Run("greedy text", func(t *testing.T) { testRealGreedy(t, u, "exact", golden) })
			t.Run("tokens", func(t *testing.T) { testRealTokens(t, u, "real", golden.Texts, c.differs) })
			t.Run("clients", func(t *testing.T) { testRealForms(t, u, c.template) })
			t.Run("push and pull", func(t *testing.T) { testRealPull(t, u, "real", "") })
			t.Run("export", func(t *testing.T) { testRealAgain(t, u) })
		})
	}
}

// qwenDiffers: llama.cpp takes the plain token </s> for a control token by its spelling, and does not compose
// characters as the publisher's normalizer, NFC, does.
var qwenDiffers = []string{"</s>", "e\u0301"}

// gemmaDiffers: two U+2581 are a user-defined piece, which the publisher's tokenizer never splits. llama.cpp looks for
// such pieces before it replaces spaces by U+2581, so it misses this one, and merges the second U+2581 with the word.
var gemmaDiffers = []string{" \u2581"}

// testRealTokens compares the tokens of 400 texts with those of llama.cpp, which recognizes special tokens in them.
// Texts that have a part of differs may have other tokens.
func testRealTokens(t *testing.T, u *user, model string, want [][]int32, differs []string) {
	texts := readReal[struct{ Texts []string }](t, "gen", "real", "texts.json").Texts
	if len(texts) != 400 || len(want) != 400 {
		t.Fatalf("%d texts, and tokens of %d", len(texts), len(want))
	}
	s, wrong := u.serve(), 0
	for i, text := range texts {
		body, err := json.Marshal(map[string]any{"model": model, "prompt": text, "add_special_tokens": false})
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.Post(s.origin+"/v1/tokenize", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Tokens []int32 }
		err = json.NewDecoder(response.Body).Decode(&got)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%q: %s, %v", text, response.Status, err)
		}
		if !slices.Equal(got.Tokens, want[i]) {
			wrong++
			if !slices.ContainsFunc(differs, func(part string) bool { return strings.Contains(text, part) }) {
				t.Errorf("%q has the tokens %v, want %v", text, got.Tokens, want[i])
			}
		}
	}
	t.Logf("%d of %d texts have llama.cpp's tokens", len(texts)-wrong, len(texts))
}

// testRealForms runs the official clients. Only what follows from a request's form is compared: that a response ends, a
// tool is called and its result accepted, and JSON matches its schema.
func testRealForms(t *testing.T, u *user, template string) {
	name := "real"
	if template != "" {
		name = "chat"
		modelfile := filepath.Join(u.home, "Modelfile")
		text := "FROM real\nPARSER llama3\nTEMPLATE \"\"\"" + template + "\"\"\"\n"
		if err := os.WriteFile(modelfile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		u.ingot("create", name, "-f", modelfile)
	}
	s := u.serve()
	c := exec.CommandContext(t.Context(), testdata(t, "..", ".cache", "clients-venv", "bin", "python"),
		testdata(t, "clients", "real_forms.py"), "-v")
	c.Env = append(u.env(), "INGOT_URL="+s.origin, "INGOT_MODEL="+name, "NO_PROXY=*")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("real_forms.py: %v (testdata/clients/setup.sh makes the environment)\n%s", err, out)
	}
	t.Logf("%s", out)
}

// testRealAgain exports the model as it was and as a folder; both import again, and continue a text as it does.
func testRealAgain(t *testing.T, u *user) {
	prompt := []string{"Two plus two is", "--temperature", "0", "--max-tokens", "24", "--local", "--raw"}
	want := u.ingot(append([]string{"run", "real"}, prompt...)...)
	for name, target := range map[string]string{"folder": "folder", "file": "file.gguf"} {
		target = filepath.Join(u.home, target)
		u.ingot("export", "real", target)
		u.ingot("create", name, target)
		equal(t, name, u.ingot(append([]string{"run", name}, prompt...)...), want)
	}
}
