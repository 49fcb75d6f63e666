package interop

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOllamaJS: Ollama's JavaScript package, which setup.sh --full installs into .bin, makes the calls of its examples.
// Its Python package is tested by TestClients in cmd.
func TestOllamaJS(t *testing.T) {
	if testing.Short() {
		t.Skip("the package is installed by setup.sh --full")
	}
	const template = "\nTEMPLATE \"\"\"{% for t in tools or [] %}{{ t.function.name }} {% endfor %}" +
		"{% for m in messages %}{{ m.content }} {% endfor %}{% if enable_thinking %}<think>{% endif %}{# </think> #}\"\"\"\n"
	u := newUser(t)
	for _, m := range []struct{ name, checkpoint, lines string }{
		{"story", "demo", ""}, {"sees", "qwen3_5-vision", ""},
		{"talk", "demo", template + "PARSER qwen3\n"}, {"calls", "demo", template + "PARSER llama3\n"},
	} {
		file := filepath.Join(u.home, "Modelfile")
		if err := os.WriteFile(file, []byte("FROM "+checkpoint(t, m.checkpoint)+m.lines), 0o644); err != nil {
			t.Fatal(err)
		}
		u.ingot("create", m.name, "-f", file)
	}
	s := u.serve()
	script, err := filepath.Abs(filepath.Join(".bin", "ollama", "calls.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := filepath.Abs(filepath.Join("..", "testdata", "pictures", "shapes.png"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for lines := bufio.NewScanner(strings.NewReader(u.run("node", script, s.origin, picture))); lines.Scan(); n++ {
		var line struct{ Case, Error string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if line.Error != "" {
			t.Errorf("%s: %s", line.Case, line.Error)
		}
	}
	if n < 11 {
		t.Errorf("%d cases", n)
	}
}
