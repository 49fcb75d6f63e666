package weighted

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingotml/ingot/quantize"
)

// supported lists the types that have a choice of scales.
func supported() (list []quantize.Type) {
	for _, t := range quantize.Types() {
		if Supports(t) {
			list = append(list, t)
		}
	}
	return list
}

// matrix returns rows of weights, the mean squares of their inputs, and the second moments [n, n] of inputs that are
// correlated.
func matrix(rows, n int) (w, squares, moments []float32) {
	r := rand.New(rand.NewPCG(1, 2))
	normal := func() float32 { return float32(r.NormFloat64()) }
	for range rows * n {
		v := normal() * 0.02
		if r.IntN(50) == 0 {
			v *= 5
		}
		w = append(w, v)
	}
	moments = make([]float32, n*n)
	const samples = 400
	x := make([]float32, n)
	for range samples {
		common := normal()
		for i := range x {
			x[i] = (normal() + common) * (0.2 + float32(i%17)/8)
		}
		for i := range x {
			for j := range x {
				moments[i*n+j] += x[i] * x[j] / samples
			}
		}
	}
	for i := range n {
		squares = append(squares, moments[i*n+i])
	}
	return w, squares, moments
}

func blocksOf(t quantize.Type, elements int) quantize.Blocks {
	return t.NewBlocks(quantize.F32, elements/t.Group())
}

// decoded returns the values that the engine sees.
func decoded(t *testing.T, of quantize.Type, b quantize.Blocks, n int) []float64 {
	t.Helper()
	data := make([]byte, 4*n)
	if err := of.Decode(data, quantize.F32, b, quantize.F32); err != nil {
		t.Fatal(err)
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
	return out
}

func encoded(t *testing.T, c *Coder, w []float32) (quantize.Blocks, []float64) {
	t.Helper()
	b := blocksOf(c.of, len(w))
	if err := c.Encode(b, append([]float32{}, w...)); err != nil {
		t.Fatal(err)
	}
	return b, decoded(t, c.of, b, len(w))
}

func mustNew(t *testing.T, of quantize.Type, squares []float32, factors []*Factor, block int) *Coder {
	t.Helper()
	c, err := New(of, quantize.F32, squares, factors, block)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The weighted error is smaller than that of the codes of package quantize, in every type.
func TestSearchIsBetter(t *testing.T) {
	const rows, n = 12, 256
	w, squares, _ := matrix(rows, n)
	bytes := make([]byte, 0, 4*len(w))
	for _, v := range w {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(v))
	}
	for _, of := range supported() {
		plain := blocksOf(of, len(w))
		if err := of.Encode(plain, bytes, quantize.F32); err != nil {
			t.Fatal(err)
		}
		loss := func(values []float64) (sum float64) {
			for i, v := range values {
				sum += float64(squares[i%n]) * (v - float64(w[i])) * (v - float64(w[i]))
			}
			return sum
		}
		_, searched := encoded(t, mustNew(t, of, squares, nil, 0), w)
		before, after := loss(decoded(t, of, plain, len(w))), loss(searched)
		if !(after < before) {
			t.Errorf("%s: weighted error %g, without the search %g", of, after, before)
		}
	}
}

// For the codes that the search chose, no other scale and bias are better: it found the least squares.
func TestSearchIsStationary(t *testing.T) {
	w, squares, _ := matrix(1, 64)
	c := mustNew(t, quantize.Int3, squares, nil, 0)
	b, _ := encoded(t, c, w)
	var codes [64]float64
	for i := range codes {
		bit := 3 * i
		two := uint(b.Packed[bit/8]) | uint(append(b.Packed, 0)[bit/8+1])<<8
		codes[i] = float64(two >> (bit % 8) & 7)
	}
	at := func(p []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(p))) }
	loss := func(scale, bias float64) (sum float64) {
		for i, q := range codes {
			e := float64(w[i]) - bias - scale*q
			sum += float64(squares[i]) * e * e
		}
		return sum
	}
	scale, bias := at(b.Scales), at(b.Biases)
	least := loss(scale, bias)
	for _, f := range []float64{0.98, 1.02} {
		if loss(scale*f, bias) < least || loss(scale, bias*f) < least {
			t.Errorf("scale or bias times %v is better", f)
		}
	}
}

// The codes equal those of a reference that inverts the matrix, and updates the inverse after each column.
func TestCompensateEqualsReference(t *testing.T) {
	const n = 64
	w, squares, moments := matrix(4, n)
	f, err := NewFactor(moments, n)
	if err != nil {
		t.Fatal(err)
	}
	c := mustNew(t, quantize.Int4.WithGroup(32), squares, []*Factor{f}, n)
	got, _ := encoded(t, c, w)
	want := blocksOf(c.of, len(w))
	for r := range 4 {
		reference(c, moments, w[r*n:][:n], want, r*n/32)
	}
	if string(got.Packed) != string(want.Packed) {
		t.Error("the codes differ")
	}
}

func reference(c *Coder, moments, row []float32, dst quantize.Blocks, group int) {
	n := len(row)
	inverse := inverted(moments, n)
	work := newWork(c)
	for i, v := range row {
		work.row64[i] = float64(v)
	}
	for g := 0; g < n; g += 32 {
		p := work.fit(work.row64[g:][:32], c.weights[g:][:32])
		for j := g; j < g+32; j++ {
			code, value := work.nearest(p, work.row64[j])
			work.bits[j-g] = code
			e := (work.row64[j] - value) / inverse[j][j]
			for k := j + 1; k < n; k++ {
				work.row64[k] -= e * inverse[j][k]
			}
			for a := j + 1; a < n; a++ {
				by := inverse[a][j] / inverse[j][j]
				for b := j + 1; b < n; b++ {
					inverse[a][b] -= by * inverse[j][b]
				}
			}
		}
		pack(dst.Packed[(group+g/32)*16:][:16], work.bits[:32], 4)
	}
}

// inverted inverts the damped moments by elimination.
func inverted(moments []float32, n int) [][]float64 {
	a, trace := make([][]float64, n), 0.0
	for i := range n {
		trace += float64(moments[i*n+i])
	}
	for i := range a {
		a[i] = make([]float64, 2*n)
		for j := range n {
			a[i][j] = float64(moments[i*n+j])
		}
		a[i][i] += Damping * trace / float64(n)
		a[i][n+i] = 1
	}
	for i := range n {
		by := a[i][i]
		for j := range a[i] {
			a[i][j] /= by
		}
		for k := range n {
			if f := a[k][i]; k != i {
				for j := range a[k] {
					a[k][j] -= f * a[i][j]
				}
			}
		}
	}
	for i := range a {
		a[i] = a[i][n:]
	}
	return a
}

// Compensation lowers the error of the outputs, in every type, also if it works in blocks.
func TestCompensateIsBetter(t *testing.T) {
	const rows, n, block = 8, 256, 128
	w, squares, moments := matrix(rows, n)
	var factors []*Factor
	for b := 0; b < n; b += block {
		var part []float32
		for i := range block {
			part = append(part, moments[(b+i)*n+b:][:block]...)
		}
		f, err := NewFactor(part, block)
		if err != nil {
			t.Fatal(err)
		}
		factors = append(factors, f)
	}
	for _, of := range supported() {
		loss := func(values []float64) (sum float64) {
			for r := range rows {
				for i := range n {
					for j := range n {
						sum += (values[r*n+i] - float64(w[r*n+i])) * float64(moments[i*n+j]) * (values[r*n+j] - float64(w[r*n+j]))
					}
				}
			}
			return sum
		}
		_, alone := encoded(t, mustNew(t, of, squares, nil, 0), w)
		_, both := encoded(t, mustNew(t, of, squares, factors, block), w)
		if !(loss(both) < 0.9*loss(alone)) {
			t.Errorf("%s: output error %g, without compensation %g", of, loss(both), loss(alone))
		}
	}
}

// The first row of a factor is that of the inverse, and the diagonal is 1.
func TestFactor(t *testing.T) {
	for _, n := range []int{1, 3, 31, 32, 33, 70, 130} {
		_, _, moments := matrix(1, n)
		f, err := NewFactor(moments, n)
		if err != nil {
			t.Fatal(err)
		}
		inverse := inverted(moments, n)
		for j := range n { // row 0 of U is row 0 of the inverse, divided by its first element
			if want := inverse[0][j] / inverse[0][0]; math.Abs(f.u[j]-want) > 1e-9 {
				t.Errorf("%d columns: U[0][%d] is %v, want %v", n, j, f.u[j], want)
			}
		}
		for i := range n {
			if f.u[i*n+i] != 1 && math.Abs(f.u[i*n+i]-1) > 1e-15 {
				t.Errorf("%d columns: U[%d][%d] is %v", n, i, i, f.u[i*n+i])
			}
		}
	}
}

// The bytes of a rule never change, on any processor.
func TestPinned(t *testing.T) {
	const n = 256
	w, squares, moments := matrix(6, n)
	f, err := NewFactor(moments, n)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	for _, of := range supported() {
		for _, factors := range [][]*Factor{nil, {f}} {
			for _, d := range []quantize.DType{quantize.BF16, quantize.F16, quantize.F32} {
				c, err := New(of, d, squares, factors, n)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := encoded(t, c, w)
				for _, p := range [][]byte{b.Packed, b.Scales, b.Biases} {
					sum.Write(p)
				}
			}
		}
	}
	const want = "884682258b985019f9e20d14f5349e925368df32f566343f7fc74073bd4f089b"
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != want {
		t.Errorf("the codes changed: %s, want %s; a rule's bytes must not change", got, want)
	}
}

// Rows without any information, and extreme ones, are encoded.
func TestExtremes(t *testing.T) {
	for _, of := range supported() {
		g := of.Group()
		row := func(f func(i int) float32) []float32 {
			out := make([]float32, g)
			for i := range out {
				out[i] = f(i)
			}
			return out
		}
		for name, w := range map[string][]float32{
			"zeros": row(func(int) float32 { return 0 }), "equal": row(func(int) float32 { return 0.37 }),
			"tiny":  row(func(i int) float32 { return float32(i) * 1e-9 }),
			"one":   row(func(i int) float32 { return float32(i / (g - 1)) }),
			"large": row(func(i int) float32 { return float32(i) * 30 }),
		} {
			for _, squares := range [][]float32{make([]float32, g), row(func(i int) float32 { return float32(i) })} {
				_, got := encoded(t, mustNew(t, of, squares, nil, 0), w)
				for i, v := range got {
					if math.IsNaN(v) || math.Abs(v-float64(w[i])) > 0.35*float64(w[g-1])+1e-2 {
						t.Fatalf("%s, %s: element %d is %v, want about %v", of, name, i, v, w[i])
					}
				}
			}
		}
	}
}

func TestBadStatistics(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, squares := range [][]float32{nil, make([]float32, 63), append(make([]float32, 63), nan),
		append(make([]float32, 63), inf), append(make([]float32, 63), -1)} {
		if _, err := New(quantize.Int4, quantize.BF16, squares, nil, 0); !errors.Is(err, ErrStatistics) {
			t.Errorf("%d squares: %v", len(squares), err)
		}
	}
	if _, err := New(quantize.MXFP8, quantize.BF16, make([]float32, 64), nil, 0); !errors.Is(err, ErrStatistics) {
		t.Errorf("a type without a choice: %v", err)
	}
	for _, m := range [][]float32{make([]float32, 3), {1, 0, 0, -1}, {1, 0, 0, nan}, {1, 0, 5, 1}} {
		if _, err := NewFactor(m, 2); !errors.Is(err, ErrStatistics) {
			t.Errorf("moments %v: %v", m, err)
		}
	}
	if _, err := NewFactor(make([]float32, 4), 2); err != nil {
		t.Errorf("moments of inputs that are always 0: %v", err)
	}
	c := mustNew(t, quantize.Int4, make([]float32, 64), nil, 0)
	row := make([]float32, 64)
	row[5] = nan
	var at *quantize.ElementError
	if err := c.Encode(blocksOf(quantize.Int4, 64), row); !errors.As(err, &at) || at.Index != 5 {
		t.Errorf("a NaN: %v", err)
	}
	if err := c.Encode(blocksOf(quantize.Int4, 64), row[:32]); !errors.Is(err, ErrStatistics) {
		t.Errorf("half a row: %v", err)
	}
}
