// Package ollamatest has images of Ollama with a GGUF file, as its registry and its store have them, for tests.
package ollamatest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// layer is a layer of an image of Ollama.
type layer struct {
	MediaType string        `json:"mediaType"`
	Digest    digest.Digest `json:"digest"`
	Size      int           `json:"size"`
}

// Image is an image of Ollama with a GGUF file.
type Image struct {
	manifest []byte
	blobs    map[digest.Digest][]byte
}

// New returns an image of layers: the last part of each media type, and the content.
func New(t testing.TB, layers ...[2]string) Image {
	t.Helper()
	i := Image{blobs: map[digest.Digest][]byte{}}
	var list []layer
	for _, l := range append(layers, [2]string{"", `{"model_format":"gguf","model_family":"llama"}`}) {
		d := digest.FromString(l[1])
		i.blobs[d] = []byte(l[1])
		list = append(list, layer{"application/vnd.ollama.image." + l[0], d, len(l[1])})
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

// Serve serves the image as library/tiny:latest and returns the address.
func (i Image) Serve(t testing.TB) string {
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

// Write writes a store of Ollama with the image as tiny:latest and returns its folder.
func (i Image) Write(t testing.TB) string {
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
