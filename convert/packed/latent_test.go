package packed

import (
	"testing"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
)

// positions are elements whose values encode their positions.
type positions struct{ first float32 }

func (e positions) Floats(dst []byte, begin, count int64) error {
	for i := range count {
		numbers.Put(dst, int(i), e.first+float32(begin+i))
	}
	return nil
}

func (positions) Codes(quantize.Blocks, int64, int64) error { return nil }

// For each head the rows of keys, transposed back, come before the rows of values, from any starting point.
func TestLatentRows(t *testing.T) {
	const count, rank, nk, nv = 3, 5, 2, 4
	e := heads{keys: positions{0}, values: positions{1000}, rank: rank, nk: nk, nv: nv}
	var want []float32
	for h := range count {
		for k := range nk {
			for r := range rank {
				want = append(want, float32((h*rank+r)*nk+k))
			}
		}
		for v := range nv {
			for r := range rank {
				want = append(want, 1000+float32((h*nv+v)*rank+r))
			}
		}
	}
	for _, n := range []int{1, 7, rank, 3 * rank, len(want)} {
		for begin := 0; begin < len(want); begin += n {
			buf := make([]byte, 4*min(n, len(want)-begin))
			if err := e.Floats(buf, int64(begin), int64(len(buf)/4)); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, len(buf)/4)
			if err := numbers.Floats(got, "F32", buf); err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if v != want[begin+i] {
					t.Fatalf("%d at a time: element %d is %v, want %v", n, begin+i, v, want[begin+i])
				}
			}
		}
	}
}

// The tables match the published formats.
func TestFP8Codes(t *testing.T) {
	for _, c := range []struct {
		dtype string
		code  byte
		want  float32
	}{
		{"F8_E4M3", 0x00, 0}, {"F8_E4M3", 0x01, 0x1p-9}, {"F8_E4M3", 0x08, 0x1p-6}, {"F8_E4M3", 0x38, 1},
		{"F8_E4M3", 0x7e, 448}, {"F8_E4M3", 0xfe, -448},
		{"F8_E5M2", 0x01, 0x1p-16}, {"F8_E5M2", 0x04, 0x1p-14}, {"F8_E5M2", 0x3c, 1}, {"F8_E5M2", 0x7b, 57344},
		{"F8_E5M2", 0xbc, -1},
	} {
		for dtype, table := range numbers.FP8 {
			if string(dtype) == c.dtype && table[c.code] != c.want {
				t.Errorf("%s %#x is %v, want %v", c.dtype, c.code, table[c.code], c.want)
			}
		}
	}
	for dtype, codes := range map[string][]byte{"F8_E4M3": {0x7f, 0xff}, "F8_E5M2": {0x7d, 0x7e, 0x7f, 0xff}} {
		for d, table := range numbers.FP8 {
			for _, code := range codes {
				if v := table[code]; string(d) == dtype && v == v {
					t.Errorf("%s %#x is %v, want NaN", dtype, code, v)
				}
			}
		}
	}
}
