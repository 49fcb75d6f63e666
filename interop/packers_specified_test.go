package interop

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// packModelPack pushes a folder as modctl does, after version 1 of the ModelPack specification: a layer for each file,
// as it is or in an archive.
func packModelPack(u *user, dir, name string, archive bool) {
	r := newUploads(u.t, name)
	form := "raw"
	if archive {
		form = "tar"
	}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: "application/vnd.cncf.model.manifest.v1+json"}
	var diffIDs []digest.Digest
	for _, f := range fileNames(u.t, dir) {
		content, kind := readFile(u.t, filepath.Join(dir, f)), "weight.config"
		if strings.HasSuffix(f, ".safetensors") {
			kind = "weight"
		}
		if archive {
			content = archived(u.t, f, content)
		}
		layer := r.blob("application/vnd.cncf.model."+kind+".v1."+form, content)
		layer.Annotations = map[string]string{"org.cncf.model.filepath": f}
		m.Layers, diffIDs = append(m.Layers, layer), append(diffIDs, layer.Digest)
	}
	m.Config = r.document("application/vnd.cncf.model.config.v1+json", map[string]any{
		"descriptor": map[string]any{"name": "demo", "family": "llama"},
		"modelfs":    map[string]any{"type": "layers", "diffIds": diffIDs},
		"config":     map[string]any{"architecture": "transformer", "format": "safetensors"},
	})
	r.manifest(m)
}

// packKit pushes a folder as KitOps does, with a Kitfile of version 1.0.0 as the config: the model's first file is the
// model, the others are its parts, each in an archive.
func packKit(u *user, dir, name string) {
	r := newUploads(u.t, name)
	type part struct {
		Path   string        `json:"path"`
		Digest digest.Digest `json:"digest"`
	}
	var model part
	parts := []part{}
	m := ocispec.Manifest{}
	for _, f := range fileNames(u.t, dir) {
		weights := strings.HasSuffix(f, ".safetensors") || strings.HasSuffix(f, ".gguf")
		kind := "modelpart"
		if weights {
			kind = "model"
		}
		layer := r.blob("application/vnd.kitops.modelkit."+kind+".v1.tar",
			archived(u.t, f, readFile(u.t, filepath.Join(dir, f))))
		m.Layers = append(m.Layers, layer)
		if weights {
			model = part{f, layer.Digest}
		} else {
			parts = append(parts, part{f, layer.Digest})
		}
	}
	m.Config = r.document("application/vnd.kitops.modelkit.config.v1+json", map[string]any{
		"manifestVersion": "1.0.0", "package": map[string]any{"name": "demo"},
		"model": map[string]any{"name": "model", "path": model.Path, "digest": model.Digest, "parts": parts},
	})
	r.manifest(m)
}

// archived returns a tar archive with a file.
func archived(t *testing.T, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// uploads puts an image into a registry.
type uploads struct {
	t        *testing.T
	url, tag string
}

func newUploads(t *testing.T, name string) uploads {
	url, tag := repository(t, name)
	return uploads{t, url, tag}
}

func (r uploads) document(mediaType string, doc any) ocispec.Descriptor {
	r.t.Helper()
	b, err := json.Marshal(doc)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.blob(mediaType, string(b))
}

func (r uploads) blob(mediaType, content string) ocispec.Descriptor {
	r.t.Helper()
	d := digest.Digest(fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))))
	at := r.send(http.MethodPost, r.url+"/blobs/uploads/", "", "")
	sep := "?"
	if strings.Contains(at, "?") {
		sep = "&"
	}
	r.send(http.MethodPut, at+sep+"digest="+string(d), "application/octet-stream", content)
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(content))}
}

func (r uploads) manifest(m ocispec.Manifest) {
	r.t.Helper()
	m.SchemaVersion = 2
	b, err := json.Marshal(m)
	if err != nil {
		r.t.Fatal(err)
	}
	r.send(http.MethodPut, r.url+"/manifests/"+r.tag, ocispec.MediaTypeImageManifest, string(b))
}

// send makes a request and returns the Location of its response.
func (r uploads) send(method, url, mediaType, body string) string {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		r.t.Fatalf("%s %s: %s", method, url, resp.Status)
	}
	return resp.Header.Get("Location")
}
