package convert

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// TensorInfo describes a tensor of an image, from its blob's header.
type TensorInfo struct {
	Name string
	// DType is the stored type; for a quantized tensor, the type of its scales in affine formats, else of its packed
	// codes.
	DType safetensors.DType
	Shape []int64       // of the tensor, not of its packed codes
	Type  quantize.Type // 0 = not quantized
	Bytes int64         // including scales and biases
	Blob  manifest.Layer
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
	byName := make(map[string]safetensors.Tensor, len(h.Tensors))
	for _, t := range h.Tensors {
		byName[t.Name] = t
	}
	var list []TensorInfo
	for _, t := range h.Tensors {
		if base, part := partOf(t.Name, byName); part && base != "" {
			continue
		}
		i := TensorInfo{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Size(), Blob: l}
		for _, suffix := range partSuffixes {
			i.Bytes += max(byName[t.Name+suffix].Size(), 0)
		}
		if scale, ok := byName[t.Name+scaleSuffix]; ok {
			if i.Type, err = blobType(tensorMetadata(h.Metadata, t.Name)); err != nil {
				return nil, wrapTensor(t.Name, err)
			}
			if i.Type != 0 {
				if i.Shape, err = i.Type.UnpackedShape(t.Shape); err != nil {
					return nil, wrapTensor(t.Name, err)
				}
				if i.Type.Mode() == "affine" {
					i.DType = scale.DType
				}
			}
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b TensorInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// partSuffixes are the suffixes of a quantized tensor's other arrays.
var partSuffixes = []string{scaleSuffix, biasSuffix, globalSuffix}

// partOf reports whether a key is such an array, and of which tensor in the same file.
func partOf(key string, keys map[string]safetensors.Tensor) (tensor string, ok bool) {
	for _, suffix := range partSuffixes {
		base, cut := strings.CutSuffix(key, suffix)
		if !cut {
			continue
		}
		_, has := keys[base]
		_, scaled := keys[base+scaleSuffix]
		if has && scaled {
			return base, true
		}
	}
	return "", false
}

// tensorMetadata returns the quantization metadata of one tensor. Files with mixed types have keys per tensor, such as
// TENSOR.quant_type, as in Ollama; otherwise the file's keys apply.
func tensorMetadata(metadata map[string]string, tensor string) map[string]string {
	if _, own := metadata[tensor+"."+metaType]; !own {
		return metadata
	}
	return map[string]string{metaType: metadata[tensor+"."+metaType], metaGroup: metadata[tensor+"."+metaGroup]}
}
