package write

import (
	"cmp"
	"slices"
	"sync"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/weighted"
)

// setCoders sets the coders of a calibrated tensor.
func (c *coder) setCoders(t *plan.Tensor, known *factors) error {
	c.columns = t.Shape[len(t.Shape)-1]
	c.matrix = t.Params()
	if len(t.Shape) == 3 {
		c.matrix /= t.Shape[0]
	}
	computed, err := known.of(t.Coding.Calibrated)
	if err == nil {
		c.calibrated, err = t.Coders(computed)
	}
	return err
}

// factors holds the factors of second moments while tensors that share them are written: the projections of queries,
// keys and values have one input.
type factors struct {
	mu     sync.Mutex
	layers map[*statistics.Layer]*shared
}

// shared are the factors of an input.
type shared struct {
	users int // tensors that did not get them yet
	get   func() ([]*weighted.Factor, error)
}

// expect counts the tensors that will be written.
func (f *factors) expect(tensors []*plan.Tensor) {
	f.layers = map[*statistics.Layer]*shared{}
	for _, t := range tensors {
		if how := t.Coding.Calibrated; how != nil && how.Method == weighted.Compensate {
			if f.layers[how.Layer] == nil {
				f.layers[how.Layer] = &shared{get: sync.OnceValues(how.Factors)}
			}
			f.layers[how.Layer].users++
		}
	}
}

// of returns the factors of a tensor, and forgets them with the last one that was expected.
func (f *factors) of(how *plan.Calibrated) ([]*weighted.Factor, error) {
	f.mu.Lock()
	s := f.layers[how.Layer]
	if s == nil {
		f.mu.Unlock()
		return how.Factors()
	}
	if s.users--; s.users == 0 {
		delete(f.layers, how.Layer)
	}
	f.mu.Unlock()
	return s.get()
}

// together orders tensors whose errors are compensated by the same factors one after the other, at the place of the
// first, so that few factors are in memory.
func together(tensors []*plan.Tensor) {
	first, place := map[*statistics.Layer]int{}, map[*plan.Tensor]int{}
	for i, t := range tensors {
		place[t] = i
		if how := t.Coding.Calibrated; how != nil && how.Method == weighted.Compensate {
			if _, known := first[how.Layer]; !known {
				first[how.Layer] = i
			}
			place[t] = first[how.Layer]
		}
	}
	slices.SortStableFunc(tensors, func(a, b *plan.Tensor) int { return cmp.Compare(place[a], place[b]) })
}

// calibrate encodes whole rows, the first of which begins at an element of the tensor, with regard to their inputs. It
// takes 4 bytes for each element beside the slab.
func (c coder) calibrate(out quantize.Blocks, in []byte, from quantize.DType, at int64) error {
	rows, err := quantize.Float32s(in, from)
	if err != nil {
		return err
	}
	size, stored := c.coding.Target.GroupSizes(quantize.F32), c.coding.Target.GroupSizes(from)
	group := c.coding.Target.Group()
	for done := 0; done < len(rows); {
		matrix := (at + int64(done)) / c.matrix
		n := int(min(int64(len(rows)-done), (matrix+1)*c.matrix-at-int64(done)))
		first, groups := done/group, n/group
		part := func(b []byte, one int) []byte { return b[first*one:][:groups*one] }
		dst := quantize.Blocks{Packed: part(out.Packed, size.Packed)}
		if stored.Biases > 0 && from != quantize.F32 {
			dst.Scales, dst.Biases = make([]byte, groups*size.Scales), make([]byte, groups*size.Biases)
		} else {
			dst.Scales, dst.Biases = part(out.Scales, size.Scales), part(out.Biases, size.Biases)
		}
		if err := c.calibrated[matrix].Encode(dst, rows[done:done+n]); err != nil {
			return shift(err, int64(done))
		}
		if stored.Biases > 0 && from != quantize.F32 { // the values are of the type already
			for _, p := range [][2][]byte{
				{part(out.Scales, stored.Scales), dst.Scales}, {part(out.Biases, stored.Biases), dst.Biases},
			} {
				if err := quantize.CastTo(from).Encode(quantize.Blocks{Packed: p[0]}, p[1], quantize.F32); err != nil {
					return err
				}
			}
		}
		done += n
	}
	return nil
}
