package load

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/models/shard"
	"github.com/ingotml/ingot/quantize"
)

// covered returns a rank's part of a tensor with whole groups of quantized elements.
func covered(own shard.Part, b *blob.Blob, packed quantize.Type) shard.Part {
	if packed != 0 && own.Axis == len(b.Arrays[""].Shape)-1 {
		return own.Cover(int64(packed.Group()))
	}
	return own
}

// Ranges returns the bytes of a tensor's blob that a rank with the given part reads, in order: the header, the part's
// bytes of each array, and the scale of the whole tensor. A rank reads the header of a tensor that it does not have.
func Ranges(b *blob.Blob, own shard.Part) ([]shard.Range, error) {
	packed, err := b.Check()
	if err != nil {
		return nil, err
	}
	if !own.Absent {
		own = covered(own, b, packed)
	}
	all := []shard.Range{{End: b.Header.DataOffset}}
	if own.Absent {
		return all, nil
	}
	for _, t := range b.Header.Tensors {
		at := b.Header.DataOffset + t.Begin
		if t.Name == b.Name+blob.GlobalSuffix {
			all = append(all, shard.Range{Begin: at, End: at + t.Size()})
			continue
		}
		size, known := dtypes[t.DType]
		if !known {
			return nil, fmt.Errorf("tensor %s: type %s is not supported", t.Name, t.DType)
		}
		ranges, err := own.Bytes(t.Shape, int64(size.Size()))
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		for _, r := range ranges {
			all = append(all, shard.Range{Begin: at + r.Begin, End: at + r.End})
		}
	}
	slices.SortFunc(all, func(a, b shard.Range) int { return int(min(1, max(-1, a.Begin-b.Begin))) })
	return all, nil
}
