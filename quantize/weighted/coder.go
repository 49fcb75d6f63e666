package weighted

import (
	"errors"
	"fmt"
	"math"

	"github.com/ingotml/ingot/quantize"
)

// ErrStatistics reports statistics that do not fit a type or a row.
var ErrStatistics = errors.New("statistics do not fit")

// Method is how codes are chosen.
type Method string

// The methods.
const (
	Search     Method = "search"
	Compensate Method = "gptq"
)

// Coder quantizes the rows of a matrix.
type Coder struct {
	of      quantize.Type
	scales  quantize.DType // type of an affine format's scales and biases
	weights []float64      // importance of the columns, with mean 1
	factors []*Factor      // of the blocks of columns; nil for Search
	block   int            // columns of a block
}

// Supports reports whether rows can be quantized to a type by regard to their inputs: affine formats, mxfp4 and nvfp4.
func Supports(t quantize.Type) bool {
	return t.Mode() == "affine" || t == quantize.MXFP4 || t == quantize.NVFP4
}

// New returns a coder for rows with the given mean squares of inputs, whose scales are stored in a type. With factors,
// which cover blocks of block columns, it compensates errors.
func New(
	t quantize.Type, scales quantize.DType, squares []float32, factors []*Factor, block int,
) (*Coder, error) {
	if !Supports(t) {
		return nil, fmt.Errorf("%w: %s has no choice of scales", ErrStatistics, t)
	}
	if len(squares)%t.Group() != 0 || len(squares) == 0 {
		return nil, fmt.Errorf("%w: %d columns are not whole groups of %s", ErrStatistics, len(squares), t)
	}
	w, err := importance(squares)
	if err != nil {
		return nil, err
	}
	c := &Coder{of: t, scales: scales, weights: w, factors: factors, block: block}
	if factors != nil && (block%t.Group() != 0 || len(factors) != (len(w)+block-1)/block) {
		return nil, fmt.Errorf("%w: blocks of %d columns are not whole groups of %s", ErrStatistics, block, t)
	}
	return c, nil
}

// floor is the least importance of a column, relative to the mean: inputs that calibration did not see may occur.
const floor = 1e-3

// importance returns the columns' importance, with mean 1.
func importance(squares []float32) ([]float64, error) {
	var sum float64
	for i, s := range squares {
		if !(s >= 0) || math.IsInf(float64(s), 0) {
			return nil, fmt.Errorf("%w: the mean square of column %d is %v", ErrStatistics, i, s)
		}
		sum += float64(s)
	}
	w := make([]float64, len(squares))
	mean := sum / float64(len(w))
	for i, s := range squares {
		w[i] = 1
		if mean > 0 {
			w[i] = max(float64(s)/mean, floor)
		}
	}
	return w, nil
}

// Method returns how the coder chooses codes.
func (c *Coder) Method() Method {
	if c.factors != nil {
		return Compensate
	}
	return Search
}

// Rule returns the version of the arithmetic of a type and a method: "affine-search-1", "nvfp4-gptq-1".
func Rule(t quantize.Type, m Method) string { return t.Mode() + "-" + string(m) + "-1" }

// Columns returns the length of a row.
func (c *Coder) Columns() int { return len(c.weights) }

// Encode quantizes whole rows of finite float32 elements. dst has the arrays of exactly these rows; scales and biases
// of affine formats are float32 with values of the scales' type.
func (c *Coder) Encode(dst quantize.Blocks, rows []float32) error {
	n, group := c.Columns(), c.of.Group()
	size := c.of.GroupSizes(quantize.F32)
	if len(rows)%n != 0 || len(dst.Packed) != len(rows)/group*size.Packed {
		return fmt.Errorf("%w: %d elements, rows of %d", ErrStatistics, len(rows), n)
	}
	for i, v := range rows {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return &quantize.ElementError{Index: int64(i), Value: f, Err: quantize.ErrNotFinite}
		}
	}
	w := newWork(c)
	groups := n / group
	for len(rows) > 0 {
		w.rows = min(batch, len(rows)/n)
		take := func(b *[]byte, one int) []byte {
			part := (*b)[:w.rows*groups*one]
			*b = (*b)[len(part):]
			return part
		}
		w.encode(quantize.Blocks{
			Packed: take(&dst.Packed, size.Packed), Scales: take(&dst.Scales, size.Scales),
			Biases: take(&dst.Biases, size.Biases),
		}, rows[:w.rows*n])
		rows = rows[w.rows*n:]
	}
	return nil
}

// batch is how many rows are quantized together. They share the reading of the factors.
const batch = 16

// work holds the buffers of a goroutine.
type work struct {
	*Coder
	rows   int          // at most batch
	row64  []float64    // the rows, with the errors of earlier columns moved onto them
	chosen []parameters // of a group of each row
	errors []float64    // of the codes of a group of each row
	bits   []uint8      // codes of a group of each row
}

func newWork(c *Coder) *work {
	g := c.of.Group()
	return &work{
		Coder: c, row64: make([]float64, batch*c.Columns()), chosen: make([]parameters, batch),
		errors: make([]float64, batch*g), bits: make([]uint8, batch*g),
	}
}

func (w *work) encode(dst quantize.Blocks, rows []float32) {
	for i, v := range rows {
		w.row64[i] = float64(v)
	}
	n, g := w.Columns(), w.of.Group()
	size := w.of.GroupSizes(quantize.F32)
	for k := range n / g {
		for r := range w.rows {
			x := w.row64[r*n+k*g:][:g]
			w.chosen[r] = w.fit(x, w.weights[k*g:][:g])
			if w.factors == nil {
				w.assign(w.bits[r*g:], w.chosen[r], x)
			}
		}
		if w.factors != nil {
			w.compensate(k * g)
		}
		for r, p := range w.chosen[:w.rows] {
			at := r*n/g + k
			pack(dst.Packed[at*size.Packed:][:size.Packed], w.bits[r*g:][:g], w.of.Bits())
			p.store(dst, at)
		}
	}
}

// parameters are a group's scale and bias. Affine: value = scale*code + bias. Otherwise value = scale*E2M1(code).
type parameters struct {
	scale, bias float64
	stored      uint8 // the scale's code, of formats that are not affine
	affine      bool
}

func (p parameters) store(dst quantize.Blocks, group int) {
	if !p.affine {
		dst.Scales[group] = p.stored
		return
	}
	putFloat(dst.Scales[4*group:], p.scale)
	putFloat(dst.Biases[4*group:], p.bias)
}

func putFloat(b []byte, v float64) {
	u := math.Float32bits(float32(v))
	b[0], b[1], b[2], b[3] = byte(u), byte(u>>8), byte(u>>16), byte(u>>24)
}

// fit chooses the parameters of a group.
func (w *work) fit(x, d []float64) parameters {
	if w.of.Mode() == "affine" {
		return w.fitAffine(x, d)
	}
	return w.fitFloat(x, d)
}

// assign chooses the nearest codes.
func (w *work) assign(codes []uint8, p parameters, x []float64) {
	for i, v := range x {
		codes[i], _ = w.nearest(p, v)
	}
}

// nearest returns the code nearest to a value, and the code's value.
func (w *work) nearest(p parameters, v float64) (code uint8, value float64) {
	if !p.affine {
		return p.nearestFloat(v)
	}
	if p.scale == 0 {
		return 0, p.bias
	}
	n := min(max(math.RoundToEven((v-p.bias)/p.scale), 0), w.limit())
	return uint8(n), float64(p.scale*n) + p.bias
}

// limit returns the largest code of an affine format.
func (c *Coder) limit() float64 { return float64(int(1)<<c.of.Bits() - 1) }

// pack writes codes as a little-endian bit stream.
func pack(dst []byte, codes []uint8, bits int) {
	var word uint64
	have := 0
	for _, c := range codes {
		word |= uint64(c) << have
		for have += bits; have >= 8; have -= 8 {
			dst[0] = byte(word)
			dst, word = dst[1:], word>>8
		}
	}
}
