package cmd_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/limits/runtest"
	"github.com/opencontainers/go-digest"
)

// ollamaLayer is a layer of an image of Ollama.
type ollamaLayer struct {
	MediaType string        `json:"mediaType"`
	Digest    digest.Digest `json:"digest"`
	Size      int           `json:"size"`
}

// ollamaImage is an image of Ollama with a GGUF file, as its registry and its store have them.
type ollamaImage struct {
	manifest []byte
	blobs    map[digest.Digest][]byte
}

func newOllamaImage(t *testing.T, layers ...[2]string) ollamaImage {
	t.Helper()
	i := ollamaImage{blobs: map[digest.Digest][]byte{}}
	var list []ollamaLayer
	for _, l := range append(layers, [2]string{"", `{"model_format":"gguf","model_family":"llama"}`}) {
		d := digest.FromString(l[1])
		i.blobs[d] = []byte(l[1])
		list = append(list, ollamaLayer{"application/vnd.ollama.image." + l[0], d, len(l[1])})
	}
	config := list[len(list)-1]
	config.MediaType = "application/vnd.docker.container.image.v1+json"
	var err error
	i.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
		"config": config, "layers": list[:len(list)-1],
	})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// serve serves the image as library/tiny:latest and returns the address.
func (i ollamaImage) serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch rest, _ := strings.CutPrefix(r.URL.Path, "/v2/"); {
		case rest == "":
		case rest == "library/tiny/manifests/latest":
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
			w.Header().Set("Docker-Content-Digest", string(digest.FromBytes(i.manifest)))
			_, _ = w.Write(i.manifest)
		case i.blobs[digest.Digest(filepath.Base(rest))] != nil:
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(i.blobs[digest.Digest(filepath.Base(rest))])))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/library/tiny"
}

// write writes a store of Ollama with the image as tiny:latest and returns its folder.
func (i ollamaImage) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(path string, data []byte) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "manifests", "registry.ollama.ai", "library", "tiny", "latest"), i.manifest)
	for d, data := range i.blobs {
		put(filepath.Join(dir, "blobs", "sha256-"+d.Encoded()), data)
	}
	return dir
}

// An image of Ollama with a GGUF file becomes a model with its template, system prompt, parameters and license,
// whether a registry or Ollama's store has it.
func TestGGUFImages(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "convert", "testdata", "gguf", "llama-rope-llama3.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	template := "{{ if .System }}{{ .System }} {{ end }}{{ .Prompt }}"
	image := newOllamaImage(t, [2]string{"model", string(file)}, [2]string{"template", template},
		[2]string{"system", "You answer."}, [2]string{"license", "MIT"},
		[2]string{"params", `{"temperature": 0.25, "stop": ["<a>", "<b>"], "num_gpu": 3}`},
		[2]string{"messages", `[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]`})
	home, name := t.TempDir(), image.serve(t)
	pulled := strings.TrimSpace(ingot(t, home, "pull", name))
	t.Setenv("OLLAMA_MODELS", image.write(t))
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
		"in 2 GGUF files":                 {{"model", "GGUF1"}, {"model", "GGUF2"}},
		"invalid GGUF file":               {{"model", "no file"}},
		"invalid layer of a":              {{"model", "GGUF"}, {"params", "{"}},
		"general.architecture is missing": {{"model", "GGUF\x03\x00\x00\x00" + strings.Repeat("\x00", 16)}},
	} {
		c := command(t.TempDir(), "pull", newOllamaImage(t, layers...).serve(t))
		out, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(out), what) {
			t.Errorf("%s: %v: %s", what, err, out)
		}
	}
}
