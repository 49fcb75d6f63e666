package convert

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ingotml/ingot/safetensors"
)

// sameAs checks that a tensor which the image leaves out holds what the other one holds, bit for bit. transformers,
// too, ties a head only then (modeling_utils.py, tie_weights, 5.23); otherwise the configuration is wrong.
func (inv *Inventory) sameAs(ctx context.Context, name, other string) error {
	a, okA := inv.Weights.Lookup(name)
	b, okB := inv.Weights.Lookup(other)
	if !okA || !okB {
		return fmt.Errorf("%s: tensors %s and %s: %w: one of them is not there", inv.Dir, name, other, ErrSource)
	}
	same, err := equal(ctx, a, b)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("%s: tensor %s: %w: it differs from %s, which %s says to use in its place: correct the configuration (tie_word_embeddings)",
			a.File.Path(), name, ErrSource, other, filepath.Join(inv.Dir, configName))
	}
	return nil
}

func equal(ctx context.Context, a, b safetensors.Source) (bool, error) {
	if a.DType != b.DType || a.Size() != b.Size() {
		return false, nil
	}
	bufA, bufB := buffers.Get().(*[]byte), buffers.Get().(*[]byte)
	defer buffers.Put(bufA)
	defer buffers.Put(bufB)
	ra, rb := a.Reader(), b.Reader()
	for left := a.Size(); left > 0; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n := min(left, int64(len(*bufA)))
		if _, err := io.ReadFull(ra, (*bufA)[:n]); err != nil {
			return false, err
		}
		if _, err := io.ReadFull(rb, (*bufB)[:n]); err != nil {
			return false, err
		}
		if !bytes.Equal((*bufA)[:n], (*bufB)[:n]) {
			return false, nil
		}
		left -= n
	}
	return true, nil
}
