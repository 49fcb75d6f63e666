package interop

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// structuredClients are the clients of structured output and the fewest cases that each reports. setup.sh --full
// installs them into .bin: Node's packages, and an environment for each Python client, since they ask for different
// versions of the same packages.
var structuredClients = []struct {
	name  string
	cases int
}{
	{"zod", 140}, {"instructor", 60}, {"outlines", 55}, {"pydantic-ai", 55}, {"langchain", 55},
}

// TestStructured: clients of structured output get values that their own types accept, for every type that a JSON
// schema can express.
func TestStructured(t *testing.T) {
	if testing.Short() {
		t.Skip("the clients are installed by setup.sh --full")
	}
	u := newUser(t)
	file := filepath.Join(u.home, "Modelfile")
	if err := os.WriteFile(file, []byte("FROM "+checkpoint(t, "demo")+toolTemplate), 0o644); err != nil {
		t.Fatal(err)
	}
	u.ingot("create", "talk", "-f", file)
	s := u.serve()
	for _, c := range structuredClients {
		t.Run(c.name, func(t *testing.T) {
			client := *u
			client.t = t
			var out string
			if c.name == "zod" {
				out = client.run("node", structured(t, "zod.mjs"), s.origin, "talk")
			} else {
				python := filepath.Join("structured", c.name, "bin", "python")
				out = client.run(python, structured(t, "run.py"), c.name, s.origin, "talk")
			}
			n := 0
			for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); n++ {
				var line struct{ Client, Case, Error string }
				if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
					t.Fatalf("%q: %v", lines.Text(), err)
				}
				if line.Error != "" {
					t.Errorf("%s: %s: %s", line.Client, line.Case, line.Error)
				}
			}
			if n < c.cases {
				t.Errorf("%d cases, want at least %d", n, c.cases)
			}
		})
	}
}

// structured returns a script. Node finds its packages next to it.
func structured(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(".bin", "structured", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
