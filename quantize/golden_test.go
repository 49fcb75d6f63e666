package quantize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/x448/float16"

	"github.com/ingotml/ingot/safetensors"
)

// Goldens are made by testdata/gen/quantize/formats.py with the official engine.

var targets = []DType{BF16, F16, F32}

// goldens reads a file of them.
func goldens(t *testing.T, name string) func(key string) (data []byte, shape []int64) {
	t.Helper()
	f, err := safetensors.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return func(key string) ([]byte, []int64) {
		t.Helper()
		tensor, ok := f.Lookup(key)
		if !ok {
			t.Fatalf("%s has no %s", name, key)
		}
		data, err := io.ReadAll(f.Reader(tensor))
		if err != nil {
			t.Fatal(err)
		}
		return data, tensor.Shape
	}
}

func quantized() []Type {
	var list []Type
	for _, q := range Types() {
		if !q.IsCast() {
			list = append(list, q)
		}
	}
	return list
}

// encode codes src, and decodes the result as all targets.
func encode(t *testing.T, q Type, src []byte, from DType) (Blocks, map[DType][]byte) {
	t.Helper()
	size := q.GroupSizes(from)
	groups := len(src) / size.Source
	b := Blocks{make([]byte, groups*size.Packed), make([]byte, groups*size.Scales), make([]byte, groups*size.Biases)}
	if err := q.Encode(b, src, from); err != nil {
		t.Fatalf("%s of %s: %v", q, from, err)
	}
	decoded := map[DType][]byte{}
	for _, to := range targets {
		decoded[to] = make([]byte, groups*q.Group()*to.Size())
		if err := q.Decode(decoded[to], to, b, from); err != nil {
			t.Fatalf("%s of %s to %s: %v", q, from, to, err)
		}
	}
	return b, decoded
}

// digest is what the script stores of bytes.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// part returns the bytes of row r of n.
func part(data []byte, r, n int) []byte { return data[len(data)/n*r : len(data)/n*(r+1)] }

// rowText shows a row as numbers.
func rowText(row []byte, d DType) string {
	v := make([]float32, len(row)/d.Size())
	d.widen(v, row)
	return fmt.Sprint(v)
}

func TestEdges(t *testing.T) {
	golden := goldens(t, "edges.safetensors")
	for _, from := range targets {
		src, shape := golden(string(from))
		rows := int(shape[0])
		for _, q := range quantized() {
			prefix := fmt.Sprintf("%s.%s.", q, from)
			want := Blocks{}
			want.Packed, _ = golden(prefix + "packed")
			want.Scales, _ = golden(prefix + "scales")
			if q.Mode() == "affine" {
				want.Biases, _ = golden(prefix + "biases")
			}
			digests, _ := golden(prefix + "decoded")
			got, decoded := encode(t, q, src, from)
			for r := range rows {
				for _, p := range []struct {
					what      string
					got, want []byte
				}{{"scales", got.Scales, want.Scales}, {"biases", got.Biases, want.Biases}, {"packed", got.Packed, want.Packed}} {
					if g, w := part(p.got, r, rows), part(p.want, r, rows); !bytes.Equal(g, w) {
						t.Fatalf("%s%s of row %d\n got %x\nwant %x\n row %s", prefix, p.what, r, g, w, rowText(part(src, r, rows), from))
					}
				}
				g := digest(part(decoded[BF16], r, rows), part(decoded[F16], r, rows), part(decoded[F32], r, rows))
				if w := hex.EncodeToString(part(digests, r, rows)); g != w {
					t.Errorf("%sdecoded of row %d %s", prefix, r, rowText(part(src, r, rows), from))
				}
			}
		}
	}
}

const kinds = 8

func TestBulk(t *testing.T) {
	golden := goldens(t, "bulk.safetensors")
	const rows = 1024
	for _, from := range targets {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			var byKind [kinds][]byte
			for r := range rows {
				byKind[r%kinds] = append(byKind[r%kinds], randomRow(r, from)...)
			}
			for _, q := range quantized() {
				want, _ := golden(fmt.Sprintf("%s.%s", q, from))
				for k, src := range byKind {
					got, decoded := encode(t, q, src, from)
					have := []string{digest(got.Packed, got.Scales, got.Biases), digest(decoded[BF16]), digest(decoded[F16]),
						digest(decoded[F32])}
					for i, what := range []string{"codes", "as BF16", "as F16", "as F32"} {
						if w := hex.EncodeToString(part(part(want, k, kinds), i, 4)); have[i] != w {
							t.Errorf("%s of %s, kind %d, %s: differs from the engine's", q, from, k, what)
						}
					}
				}
			}
		})
	}
}

// Every finite number of 16 bits as the largest magnitude of a group.
func TestPeaks(t *testing.T) {
	golden := goldens(t, "bulk.safetensors")
	for from, end := range map[DType]int{BF16: 0x7f80, F16: 0x7c00} {
		src := make([]byte, 64*end)
		for i := range end {
			le.PutUint16(src[64*i:], uint16(i))
		}
		for _, q := range []Type{MXFP4, MXFP8, NVFP4} {
			want, _ := golden(fmt.Sprintf("peaks.%s.%s", q, from))
			got, decoded := encode(t, q, src, from)
			have := []string{digest(got.Packed, got.Scales, got.Biases), digest(decoded[BF16]), digest(decoded[F16]),
				digest(decoded[F32])}
			for i, what := range []string{"codes", "as BF16", "as F16", "as F32"} {
				if w := hex.EncodeToString(part(want, i, 4)); have[i] != w {
					t.Errorf("%s of %s, %s: differs from the engine's", q, from, what)
				}
			}
		}
	}
}

// mix is number i of the splitmix64 sequence from 0.
func mix(i uint64) uint64 {
	z := (i + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// randomRow is row r of the script's generator, which says what the kinds are.
func randomRow(r int, d DType) []byte {
	ebits, mbits := 8, d.Size()*8-9
	if d == F16 {
		ebits, mbits = 5, 10
	}
	bias, top := 1<<(ebits-1)-1, 1<<ebits-1
	y := mix(uint64(r) + 1<<40)
	out := make([]byte, 0, 128*d.Size())
	for c := range 128 {
		x := mix(uint64(r*128+c) + 1<<32)
		base := int(y%16) + bias - 14
		zeros := 0
		for x>>zeros&1 == 0 && zeros < 8 {
			zeros++
		}
		exp, man, sign := max(base-zeros, 0), x>>8&(1<<mbits-1), x>>63
		switch r % kinds {
		case 1:
			sign = 0
		case 2:
			sign = 1
		case 3:
			man &= 3 << (mbits - 2)
		case 5:
			exp, sign = base, y>>63
		case 6:
			if uint64(c) == y>>8%128 {
				exp = base + 9
			}
		}
		v := uint64(min(exp, top-1))<<mbits | man
		if r%kinds == 7 && x>>40&7 != 0 {
			v = 0
		}
		v |= sign << (ebits + mbits)
		if r%kinds == 4 {
			v = x >> 16 & (1<<(1+ebits+mbits) - 1)
			if int(v>>mbits)&top == top {
				v ^= 1 << mbits
			}
		}
		if d == F32 {
			out = le.AppendUint32(out, uint32(v))
		} else {
			out = le.AppendUint16(out, uint16(v))
		}
	}
	return out
}

func TestCast(t *testing.T) {
	golden := goldens(t, "cast.safetensors")
	every := make([]byte, 1<<17)
	for i := range 1 << 16 {
		le.PutUint16(every[2*i:], uint16(i))
	}
	for _, from := range []DType{BF16, F16, F32, F64, I8, U8, I16, U16, I32, U32, I64, U64} {
		src, hashed := every, true
		switch from {
		case BF16, F16:
		case F32:
			src = halfway()
		default:
			src, _ = golden(string(from))
			hashed = false
		}
		for _, to := range targets {
			want, _ := golden(fmt.Sprintf("%s.%s", from, to))
			got := make([]byte, len(src)/from.Size()*to.Size())
			if err := Cast(got, to, src, from); err != nil {
				t.Fatal(err)
			}
			if hashed {
				if digest(got) != hex.EncodeToString(want) {
					t.Errorf("%s to %s: differs from the engine's", from, to)
				}
				continue
			}
			n := len(src) / from.Size()
			for i := range n {
				if g, w := part(got, i, n), part(want, i, n); !bytes.Equal(g, w) {
					t.Errorf("%s %v (%x) to %s: got %x, want %x", from, valueAt(src, from, i), part(src, i, n), to, g, w)
				}
			}
		}
	}
}

// halfway is the function of that name in the script.
func halfway() []byte {
	half := func(h uint32) float32 { return float16.Frombits(uint16(h)).Float32() }
	var words [7][]uint32
	for h := range uint32(1 << 16) {
		b := h<<16 | 0x8000
		words[0], words[1], words[2] = append(words[0], b-1), append(words[1], b), append(words[2], b+1)
		if h&0x7fff < 0x7bff {
			m := math.Float32bits((half(h) + half(h+1)) / 2)
			words[3], words[4], words[5] = append(words[3], m-1), append(words[4], m), append(words[5], m+1)
		}
		words[6] = append(words[6], uint32(mix(uint64(h)+1<<44)>>32))
	}
	var out []byte
	for _, list := range words {
		for _, w := range list {
			out = le.AppendUint32(out, w)
		}
	}
	return out
}
