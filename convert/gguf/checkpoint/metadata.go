package checkpoint

import (
	"fmt"
	"math"
	"strings"

	"github.com/ingotml/ingot/arch/gguf"
)

// maxSmall bounds the elements of a tensor that determines the configuration.
const maxSmall = 1 << 16

// Value implements [gguf.File].
func (s *set) Value(key string) (any, bool) {
	v, ok := s.files[0].header.Metadata.Lookup(key)
	switch {
	case !ok:
		return nil, false
	case v.IsArray && v.Len > maxSmall:
		return v.String(), true
	}
	return v.Plain(), true
}

// Shape implements [gguf.File].
func (s *set) Shape(name string) ([]int64, bool) {
	t, ok := s.tensors[name]
	return t.Shape, ok
}

// Floats implements [gguf.File].
func (s *set) Floats(name string) ([]float32, error) {
	t, ok := s.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%w: there is no tensor %s", gguf.ErrMetadata, name)
	}
	n := elements(t.Shape)
	if n > maxSmall {
		return nil, fmt.Errorf("%w: tensor %s has %d elements, more than %d", gguf.ErrMetadata, name, n, maxSmall)
	}
	raw := make([]byte, 4*n)
	if err := reader(t).Floats(raw, 0, n); err != nil {
		return nil, err
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
	}
	return out, nil
}

// checkRotated refuses PrismML's files whose weights are multiplied by a Hadamard matrix. Their programs multiply the
// activations too; without that the model computes nonsense.
func (s *set) checkRotated() error {
	for _, key := range s.files[0].header.Metadata.Keys() {
		if strings.HasPrefix(key, "prism.hadamard.") {
			return fmt.Errorf("%w: metadata %s: its weights are rotated for activations that are rotated too, which this "+
				"version does not do; use another file of the model, or its unquantized checkpoint", gguf.ErrMetadata, key)
		}
	}
	return nil
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}
