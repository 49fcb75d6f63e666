package checkpoint

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/gguf"
)

// maxSmall bounds the elements of a tensor that determines the configuration.
const maxSmall = 1 << 16

// Value implements [arch.GGUFFile]. Numbers are as short as they can be, as float32 if that is their type.
func (s *set) Value(key string) (any, bool) {
	v, ok := s.files[0].header.Metadata.Lookup(key)
	if !ok {
		return nil, false
	}
	if !v.IsArray {
		return scalar(v, 0)
	}
	if v.Len > maxSmall {
		return nil, false
	}
	list := make([]any, v.Len)
	for i := range list {
		if list[i], ok = scalar(v, i); !ok {
			return nil, false
		}
	}
	return list, true
}

func scalar(v gguf.Value, i int) (any, bool) {
	switch v.Kind {
	case gguf.String:
		return v.Strings()[i], true
	case gguf.Bool:
		return v.Bool(i)
	case gguf.Float32, gguf.Float64:
		bits := 64
		if v.Kind == gguf.Float32 {
			bits = 32
		}
		x, ok := v.Float(i)
		if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, false
		}
		return json.Number(strconv.FormatFloat(x, 'g', -1, bits)), true
	}
	n, ok := v.Int(i)
	return json.Number(strconv.FormatInt(n, 10)), ok
}

// Shape implements [arch.GGUFFile].
func (s *set) Shape(name string) ([]int64, bool) {
	t, ok := s.tensors[name]
	return t.Shape, ok
}

// Floats implements [arch.GGUFFile].
func (s *set) Floats(name string) ([]float32, error) {
	t, ok := s.tensors[name]
	if !ok {
		return nil, fmt.Errorf("%w: there is no tensor %s", arch.ErrGGUF, name)
	}
	n := elements(t.Shape)
	if n > maxSmall {
		return nil, fmt.Errorf("%w: tensor %s has %d elements, more than %d", arch.ErrGGUF, name, n, maxSmall)
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

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}
