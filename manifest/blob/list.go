package blob

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Tensor describes a tensor of a safetensors file.
type Tensor struct {
	Name string
	// DType is the stored type; for a quantized tensor, the type of its scales in affine formats, else of its packed
	// codes.
	DType safetensors.DType
	Shape []int64       // of the tensor, not of its packed codes
	Type  quantize.Type // 0 = not quantized
	Bytes int64         // including scales and biases
}

// List lists the tensors of a file, sorted by name. The file may be a tensor's blob, or have several tensors, as other
// tools pack them.
func List(h *safetensors.Header) ([]Tensor, error) {
	byName := make(map[string]safetensors.Tensor, len(h.Tensors))
	for _, t := range h.Tensors {
		byName[t.Name] = t
	}
	var list []Tensor
	for _, t := range h.Tensors {
		if base, part := partOf(t.Name, byName); part && base != "" {
			continue
		}
		i := Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Bytes: t.Size()}
		for _, suffix := range suffixes {
			i.Bytes += max(byName[t.Name+suffix].Size(), 0)
		}
		if scale, ok := byName[t.Name+ScaleSuffix]; ok {
			if err := i.unpack(typeMetadata(h.Metadata, t.Name), scale); err != nil {
				return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
			}
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// unpack replaces the description of packed codes by that of the tensor.
func (t *Tensor) unpack(metadata map[string]string, scale safetensors.Tensor) (err error) {
	if t.Type, err = typeOf(metadata); err != nil || t.Type == 0 {
		return err
	}
	if t.Shape, err = t.Type.UnpackedShape(t.Shape); err != nil {
		return err
	}
	if t.Type.Mode() == "affine" {
		t.DType = scale.DType
	}
	return nil
}

// partOf reports whether a key is that of a quantized tensor's other arrays, and of which tensor in the same file.
func partOf(key string, keys map[string]safetensors.Tensor) (tensor string, ok bool) {
	for _, suffix := range suffixes {
		base, cut := strings.CutSuffix(key, suffix)
		if !cut {
			continue
		}
		_, has := keys[base]
		_, scaled := keys[base+ScaleSuffix]
		if has && scaled {
			return base, true
		}
	}
	return "", false
}

// typeMetadata returns the quantization metadata of one tensor. Files with mixed types have keys per tensor, such as
// TENSOR.quant_type, as in Ollama; otherwise the file's keys apply.
func typeMetadata(metadata map[string]string, tensor string) map[string]string {
	if _, own := metadata[tensor+"."+MetaType]; !own {
		return metadata
	}
	return map[string]string{MetaType: metadata[tensor+"."+MetaType], MetaGroup: metadata[tensor+"."+MetaGroup]}
}
