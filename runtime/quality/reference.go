package quality

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ingotml/ingot/safetensors"
)

// ErrReference reports a reference file that cannot be used.
var ErrReference = errors.New("bad reference file")

// Reference holds what another implementation computed.
type Reference struct {
	Tokens []int32   // [T]
	Logits []float32 // [R, Vocab]: the logits after each of the last R tokens, 0 < R <= T
	Vocab  int
	Greedy []int32 // greedy continuation of Tokens; nil if it was not recorded
}

// ReadReference reads a safetensors file with `tokens` int32 [T], `logits` float32 [R, V], and optionally `greedy`
// int32 [N]. The logits are those after the last R tokens. It ignores other tensors.
func ReadReference(path string) (*Reference, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &Reference{}
	tokens, err := referenceTensor(f, path, "tokens", "I32", 1)
	if err != nil {
		return nil, err
	}
	logits, err := referenceTensor(f, path, "logits", "F32", 2)
	if err != nil {
		return nil, err
	}
	if tokens.Shape[0] == 0 || logits.Shape[0] == 0 || logits.Shape[0] > tokens.Shape[0] || logits.Shape[1] == 0 {
		return nil, fmt.Errorf("%s: shapes of tokens %v and logits %v do not match: %w", path, tokens.Shape, logits.Shape,
			ErrReference)
	}
	r.Vocab = int(logits.Shape[1])
	if r.Tokens, err = elements[int32](f, tokens); err != nil {
		return nil, err
	}
	if r.Logits, err = elements[float32](f, logits); err != nil {
		return nil, err
	}
	for i, v := range r.Logits {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("%s: logits[%d, %d] is %v: %w", path, i/r.Vocab, i%r.Vocab, v, ErrReference)
		}
	}
	if _, ok := f.Lookup("greedy"); !ok {
		return r, nil
	}
	greedy, err := referenceTensor(f, path, "greedy", "I32", 1)
	if err != nil {
		return nil, err
	}
	r.Greedy, err = elements[int32](f, greedy)
	return r, err
}

func referenceTensor(
	f *safetensors.File, path, name string, d safetensors.DType, rank int,
) (safetensors.Tensor, error) {
	t, ok := f.Lookup(name)
	if !ok {
		return t, fmt.Errorf("%s: tensor %s is absent: %w", path, name, ErrReference)
	}
	if t.DType != d || len(t.Shape) != rank {
		return t, fmt.Errorf("%s: tensor %s is %s %v, want %s with %d axes: %w", path, name, t.DType, t.Shape, d, rank,
			ErrReference)
	}
	return t, nil
}

func elements[T int32 | float32](f *safetensors.File, t safetensors.Tensor) ([]T, error) {
	raw, err := io.ReadAll(f.Reader(t))
	if err != nil {
		return nil, err
	}
	out := make([]T, len(raw)/4)
	for i := range out {
		bits := binary.LittleEndian.Uint32(raw[4*i:])
		switch v := any(&out[i]).(type) {
		case *int32:
			*v = int32(bits)
		case *float32:
			*v = math.Float32frombits(bits)
		}
	}
	return out, nil
}
