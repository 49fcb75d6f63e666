package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest/ollama/ollamatest"
)

// An image of Ollama with a GGUF file becomes a model with its template, system prompt, parameters and license,
// whether a registry or Ollama's store has it.
func TestGGUFImages(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "convert", "testdata", "gguf", "llama-rope-llama3.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	template := "{{ if .System }}{{ .System }} {{ end }}{{ .Prompt }}"
	image := ollamatest.New(t, [2]string{"model", string(file)}, [2]string{"template", template},
		[2]string{"system", "You answer."}, [2]string{"license", "MIT"},
		[2]string{"params", `{"temperature": 0.25, "stop": ["<a>", "<b>"], "num_gpu": 3}`},
		[2]string{"messages", `[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]`})
	home, name := t.TempDir(), image.Serve(t)
	pulled := strings.TrimSpace(ingot(t, home, "pull", name))
	t.Setenv("OLLAMA_MODELS", image.Write(t))
	copied := strings.TrimSpace(ingot(t, home, "cp", "ollama://tiny", "copied"))
	if _, d, _ := strings.Cut(copied, "@"); d != pulled {
		t.Errorf("pulled %s, copied %s", pulled, copied)
	}
	modelfile := ingot(t, home, "show", name, "--modelfile")
	for _, want := range []string{template, "You answer.", "MIT", "temperature 0.25", "<b>", "MESSAGE assistant Hello"} {
		if !strings.Contains(modelfile, want) {
			t.Errorf("no %q in\n%s", want, modelfile)
		}
	}
	if again := strings.TrimSpace(ingot(t, home, "pull", name)); again != pulled {
		t.Errorf("pulled again: %s, want %s", again, pulled)
	}
	ingot(t, home, "prune", "--yes")
	ingot(t, home, "fsck")
	ids := filepath.Join(home, "ids.json") // the file has no tokenizer
	if err := os.WriteFile(ids, []byte("[1, 2, 3]"), 0o600); err != nil {
		t.Fatal(err)
	}
	engine, why := installedEngine()
	if runtest.Engine.On() {
		runtest.Engine.Need(t, why)
	}
	if t.Setenv("INGOT_ENGINE", engine); why == nil {
		if got := ingot(t, home, "run", name, "--prompt-ids", ids, "--max-tokens", "4", "--temperature", "0"); got == "" {
			t.Error("it answers nothing")
		}
	}
}

// What cannot be imported is refused by name.
func TestGGUFImagesRefused(t *testing.T) {
	for what, layers := range map[string][][2]string{
		"with an adapter":                 {{"model", "GGUF"}, {"adapter", "GGUF"}},
		"model-00001-of-00002.gguf":       {{"model", "GGUF1"}, {"model", "GGUF2"}}, // parts of one file
		"invalid GGUF file":               {{"model", "no file"}},
		"invalid layer of a":              {{"model", "GGUF"}, {"params", "{"}},
		"general.architecture is missing": {{"model", "GGUF\x03\x00\x00\x00" + strings.Repeat("\x00", 16)}},
	} {
		c := command(t.TempDir(), "pull", ollamatest.New(t, layers...).Serve(t))
		out, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(out), what) {
			t.Errorf("%s: %v: %s", what, err, out)
		}
	}
}
