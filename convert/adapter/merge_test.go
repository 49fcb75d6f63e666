package adapter

import (
	"bytes"
	"testing"

	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// zeros is a weight of zeros.
type zeros struct{ packed.Elements }

func (zeros) Floats(dst []byte, _, _ int64) error { clear(dst); return nil }

func (zeros) Codes(quantize.Blocks, int64, int64) error { return nil }

// The division into batches, also inside of rows, does not affect the elements.
func TestMergedInPieces(t *testing.T) {
	a, err := Open(safetensors.Dir("../../testdata/adapters/patterns"))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ranks := map[int64]bool{}
	for _, d := range a.Deltas {
		ranks[d.Rank] = true
		m := Merged(zeros{}, d)
		n := d.B.Shape[0] * d.A.Shape[1]
		whole := make([]byte, 4*n)
		if err := m.Floats(whole, 0, n); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(whole, []byte{0}) == len(whole) {
			t.Fatalf("%s adds nothing", d.Module)
		}
		for _, size := range []int64{1, 17, d.A.Shape[1], d.A.Shape[1] + 1, 3*d.A.Shape[1] - 5} {
			pieces := make([]byte, 4*n)
			for at := int64(0); at < min(n, 40*size); at += size {
				count := min(size, n-at)
				if err := m.Floats(pieces[4*at:4*(at+count)], at, count); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(pieces[4*at:4*(at+count)], whole[4*at:4*(at+count)]) {
					t.Fatalf("%s, %d elements from %d on differ", d.Module, count, at)
				}
			}
		}
	}
	if !ranks[2] || !ranks[6] || !ranks[9] {
		t.Errorf("ranks %v", ranks)
	}
}
