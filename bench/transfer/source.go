package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
)

// shapes list the tensor sizes of an image in bytes.
var shapes = map[string]func() []int64{
	// 250 equal tensors.
	"tensors": func() []int64 { return slices.Repeat([]int64{8 << 20}, 250) },
	// Llama 3.2 1B in bf16: an embedding of 525 MB, 112 matrices of 2 to 32 MiB, 33 norms of 4 KiB.
	"llama-1b": func() []int64 {
		sizes := []int64{128256 * 2048 * 2, 4 << 10}
		for range 16 {
			sizes = append(sizes, 4<<10, 8<<20, 2<<20, 2<<20, 8<<20, 4<<10, 32<<20, 32<<20, 32<<20)
		}
		return sizes
	},
	// For a quick run.
	"small": func() []int64 { return slices.Repeat([]int64{8 << 20}, 16) },
}

func shapeNames() []string { return slices.Sorted(maps.Keys(shapes)) }

// source is a store with one model.
type source struct {
	dir, name string
	digest    string
	bytes     int64
	blobs     int
}

func makeSource(ctx context.Context, dir, shape string) (source, error) {
	sizes, ok := shapes[shape]
	if !ok {
		return source{}, fmt.Errorf("no shape %q; there are %s", shape, strings.Join(shapeNames(), ", "))
	}
	s := source{dir: filepath.Join(dir, "source"), name: "bench:v1"}
	store, err := store.Open(s.dir)
	if err != nil {
		return s, err
	}
	release, err := store.Lock(ctx)
	if err != nil {
		return s, err
	}
	defer release()
	img := manifest.Image{Config: manifest.Config{Architecture: "LlamaForCausalLM", ModelType: "llama",
		Format: "safetensors", DType: "BF16"}}
	random := rand.NewChaCha8([32]byte{8})
	for i, size := range sizes() {
		name := fmt.Sprintf("model.layers.%d.weight", i)
		w, err := store.NewBlob(ctx)
		if err != nil {
			return s, err
		}
		defer w.Abort()
		if _, err := w.Write(header(name, size)); err != nil {
			return s, err
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(random, size), make([]byte, 1<<20)); err != nil {
			return s, err
		}
		digest, n, err := w.Commit()
		if err != nil {
			return s, err
		}
		img.Layers = append(img.Layers, manifest.Layer{Kind: manifest.KindTensor, Name: name, Digest: digest, Size: n})
		s.bytes += n
	}
	s.blobs = len(img.Layers)
	name, err := manifest.ParseName(s.name)
	if err != nil {
		return s, err
	}
	digest, err := store.Put(ctx, name, img)
	s.digest = digest.String()
	return s, err
}

// header returns the safetensors header of a file with one tensor.
func header(name string, size int64) []byte {
	text := fmt.Sprintf(`{"%s":{"dtype":"BF16","shape":[%d],"data_offsets":[0,%d]}}`, name, size/2, size)
	text += strings.Repeat(" ", (16<<10)-8-len(text))
	return append([]byte{byte(len(text)), byte(len(text) >> 8), 0, 0, 0, 0, 0, 0}, text...)
}

// inRegistry checks that the registry has the pushed image.
func (s source) inRegistry(ctx context.Context, host, name string) error {
	path, tag, _ := strings.Cut(strings.TrimPrefix(name, host+"/"), ":")
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+host+"/v2/"+path+"/manifests/"+tag, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if got := resp.Header.Get("Docker-Content-Digest"); got != s.digest {
		return fmt.Errorf("after the push the registry has %q, not %s", got, s.digest)
	}
	return nil
}

// onDisk checks a pulled layout: the manifest, and the number and size of the blobs.
func (s source) onDisk(layout string) error {
	var index struct {
		Manifests []struct{ Digest string }
	}
	b, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return err
	}
	if len(index.Manifests) != 1 || index.Manifests[0].Digest != s.digest {
		return fmt.Errorf("after the pull the layout has %v, not %s", index.Manifests, s.digest)
	}
	var sum int64
	entries, err := os.ReadDir(filepath.Join(layout, "blobs", "sha256"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		sum += info.Size()
	}
	if sum < s.bytes || len(entries) != s.blobs+2 {
		return fmt.Errorf("after the pull the layout has %d bytes in %d blobs, not %d in %d", sum, len(entries), s.bytes,
			s.blobs+2)
	}
	return nil
}
