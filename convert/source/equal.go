package source

import (
	"bytes"
	"context"
	"fmt"
)

// CheckSame verifies that a dropped tensor equals another one, bit for bit. Otherwise the configuration is wrong:
// transformers ties the head to the embedding only if both are equal (modeling_utils.py, tie_weights, 5.23).
func (src *Source) CheckSame(ctx context.Context, name, other string) error {
	a, err := src.Lookup(name)
	if err != nil {
		return err
	}
	b, err := src.Lookup(other)
	if err != nil {
		return err
	}
	expectBoth(*a, *b, compareSize)
	same, err := equal(ctx, *a, *b)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("%s: tensor %s: %w: it differs from %s, but %s ties the two; correct tie_word_embeddings there",
			a.Path, name, ErrSource, other, src.pathOf(ConfigName))
	}
	return nil
}

func equal(ctx context.Context, a, b Tensor) (bool, error) {
	if a.Coded != nil || b.Coded != nil {
		return equalCoded(ctx, a, b)
	}
	size := a.Size()
	if a.DType != b.DType || a.Quant != b.Quant || size != b.Size() {
		return false, nil
	}
	if a.Quant != 0 {
		return false, nil // an image never contains both
	}
	ra, closeA, err := a.Open()
	if err != nil {
		return false, err
	}
	defer closeA()
	rb, closeB, err := b.Open()
	if err != nil {
		return false, err
	}
	defer closeB()
	bufA, bufB := make([]byte, compareSize), make([]byte, compareSize)
	for at := int64(0); at < size; at += compareSize {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n := min(size-at, compareSize)
		if err := ReadFull(ra, bufA[:n], at); err != nil {
			return false, err
		}
		if err := ReadFull(rb, bufB[:n], at); err != nil {
			return false, err
		}
		if !bytes.Equal(bufA[:n], bufB[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// equalCoded compares all source tensors of two quantized weights.
func equalCoded(ctx context.Context, a, b Tensor) (bool, error) {
	if a.Coded == nil || b.Coded == nil || a.Coded.Format != b.Coded.Format {
		return false, nil
	}
	left, right := a.Parts(), b.Parts()
	if len(left) != len(right) {
		return false, nil
	}
	for i := range left {
		if same, err := equal(ctx, left[i], right[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// compareSize is the number of bytes compared at a time.
const compareSize = 1 << 20
