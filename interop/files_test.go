package interop

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// layoutIndex reads the index of an OCI image layout (image-spec v1.1.1, image-layout.md).
func layoutIndex(t *testing.T, dir string) ocispec.Index {
	t.Helper()
	var idx ocispec.Index
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join(dir, "index.json"))), &idx); err != nil {
		t.Fatalf("index of %s: %v", dir, err)
	}
	return idx
}

func layoutBlob(t *testing.T, dir string, d ocispec.Descriptor) string {
	t.Helper()
	return readFile(t, filepath.Join(dir, "blobs", "sha256", d.Digest.Encoded()))
}

// onlyImage returns the only image of a layout.
func onlyImage(t *testing.T, dir string) ocispec.Descriptor {
	t.Helper()
	idx := layoutIndex(t, dir)
	if len(idx.Manifests) != 1 {
		t.Fatalf("%s holds %d images, not one", dir, len(idx.Manifests))
	}
	return idx.Manifests[0]
}

// extract writes each layer of a layout's only image to its filepath annotation, as model-spec defines for raw layers.
func extract(t *testing.T, layout string) string {
	t.Helper()
	var m ocispec.Manifest
	if err := json.Unmarshal([]byte(layoutBlob(t, layout, onlyImage(t, layout))), &m); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, l := range m.Layers {
		path := l.Annotations["org.cncf.model.filepath"]
		if !filepath.IsLocal(path) || !strings.HasSuffix(l.MediaType, ".raw") {
			t.Fatalf("layer %s: type %s, path %q", l.Digest, l.MediaType, path)
		}
		writeFile(t, filepath.Join(dir, filepath.FromSlash(path)), layoutBlob(t, layout, l))
	}
	return dir
}

// tensor is a tensor of a safetensors file.
type tensor struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
	data    string
}

// tensors reads a checkpoint folder after the format's documentation: the index file maps tensors to files; without one
// there is a single file.
func tensors(t *testing.T, dir string) map[string]tensor {
	t.Helper()
	where := map[string][]string{}
	if text, err := os.ReadFile(filepath.Join(dir, "model.safetensors.index.json")); err == nil {
		var index struct {
			WeightMap map[string]string `json:"weight_map"`
		}
		if err := json.Unmarshal(text, &index); err != nil {
			t.Fatal(err)
		}
		for name, file := range index.WeightMap {
			where[file] = append(where[file], name)
		}
	} else {
		where["model.safetensors"] = nil
	}
	all := map[string]tensor{}
	for file, names := range where {
		text := readFile(t, filepath.Join(dir, file))
		header := safetensorsHeader(t, file, []byte(text))
		data := text[len(text)-dataSize(t, header):]
		if names == nil {
			for name := range header {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if name == "__metadata__" {
				continue
			}
			var x tensor
			if err := json.Unmarshal(header[name], &x); err != nil {
				t.Fatalf("%s: tensor %s: %v", file, name, err)
			}
			x.data = data[x.Offsets[0]:x.Offsets[1]]
			x.Offsets = [2]int64{}
			all[name] = x
		}
	}
	return all
}

// dataSize returns the length of the data after the header.
func dataSize(t *testing.T, header map[string]json.RawMessage) int {
	t.Helper()
	end := int64(0)
	for name, text := range header {
		if name == "__metadata__" {
			continue
		}
		var x tensor
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatal(err)
		}
		end = max(end, x.Offsets[1])
	}
	return int(end)
}
