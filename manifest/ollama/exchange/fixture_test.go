package exchange

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/opencontainers/go-digest"
)

// ollamaFolder is an Ollama store with writable blobs, as written by Ollama's create.
type ollamaFolder struct {
	*Ollama
	t *testing.T
}

func newOllama(t *testing.T) ollamaFolder {
	t.Helper()
	o, err := Open(filepath.Join(t.TempDir(), "models"))
	if err != nil {
		t.Fatal(err)
	}
	return ollamaFolder{o, t}
}

func (o ollamaFolder) blob(text string) digest.Digest {
	o.t.Helper()
	d := digest.FromString(text)
	o.write(o.blobPath(d), text)
	return d
}

func (o ollamaFolder) write(path, text string) {
	o.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		o.t.Fatal(err)
	}
}

const tinyConfig = `{"model_format":"safetensors","capabilities":["completion"]}`

// model stores the blobs of a model with one tensor and a config file, and returns its manifest.
func (o ollamaFolder) model(tensor string) string {
	o.t.Helper()
	config, w, file := o.blob(tinyConfig), o.blob(tensor), o.blob("{}")
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",`+
		`"config":{"mediaType":`+
		`"application/vnd.docker.container.image.v1+json","digest":"%s","size":%d},"layers":[`+
		`{"mediaType":"application/vnd.ollama.image.tensor","digest":"%s","size":%d,"name":"w"},`+
		`{"mediaType":"application/vnd.ollama.image.json","digest":"%s","size":2,"name":"config.json"}]}`+"\n", config,
		len(tinyConfig), w, len(tensor), file)
}

func (o ollamaFolder) put(path, manifestBytes string) {
	o.t.Helper()
	o.write(filepath.Join(o.root, path), manifestBytes)
}

// partials lists temporary files, which are neither blobs nor manifests.
func (o ollamaFolder) partials() (list []string) {
	o.t.Helper()
	filepath.WalkDir(o.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), "ingot") {
			list = append(list, path)
		}
		return err
	})
	return list
}

func ollamaName(t *testing.T, s string) ollama.Name {
	t.Helper()
	n, err := ollama.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
