package source

import (
	"context"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/safetensors"
)

// TensorInfo describes a tensor of an image, from its blob's header.
type TensorInfo struct {
	blob.Tensor
	Blob manifest.Layer
}

// ReadTensors lists the tensors of a model in the store, in the order of its layers. Layers may be tensor blobs, or
// safetensors files with several tensors, as other tools pack them. It reads only headers.
func ReadTensors(ctx context.Context, store *store.Store, entry *store.Entry) ([]TensorInfo, error) {
	var all []TensorInfo
	for _, l := range entry.Image.Layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if l.Kind != manifest.KindTensor && !strings.HasSuffix(l.Name, ".safetensors") {
			continue
		}
		list, err := readTensors(store, l)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", entry.Name, l.Name, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

func readTensors(store *store.Store, l manifest.Layer) ([]TensorInfo, error) {
	f, err := store.OpenBlob(l.Digest)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	h, err := safetensors.ReadHeader(f, info.Size())
	if err != nil {
		return nil, err
	}
	tensors, err := blob.List(h)
	if err != nil {
		return nil, err
	}
	var list []TensorInfo
	for _, t := range tensors {
		list = append(list, TensorInfo{t, l})
	}
	return list, nil
}
