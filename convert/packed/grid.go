package packed

import (
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
	"github.com/x448/float16"
)

// grid is a matrix of integer codes with a scale and a zero point per group of a row: an element is (code - zero) *
// scale. Affine formats represent the same as code*scale + bias, with a bias of -zero*scale.
type grid struct {
	rows, columns int64
	bits          int
	order         []int32       // the group of each column; matrices share it; nil if it is not known
	inOrder       int64         // if not 0, groups are that many consecutive columns
	groups        int64         // per row
	symmetric     bool          // all zero points are 2^(bits-1), because there are none
	declared      bool          // the configuration says so, whatever zero points there are
	target        quantize.Type // format that represents the codes; 0 = none
	dtype         quantize.DType
	read          gridReader
}

// gridReader reads whole rows.
type gridReader interface {
	codes(dst []uint8, row, rows int64) error
	// params reads the scale and the zero point of each group of each row.
	params(scales, zeros []float32, row, rows int64) error
}

// consecutiveGroups returns each column's group if groups are consecutive columns. A checkpoint has few sizes, and up
// to 100,000 matrices.
func (c *Checkpoint) consecutiveGroups(columns, group int64) []int32 {
	key := [2]int64{columns, group}
	if order, ok := c.orders[key]; ok {
		return order
	}
	order := make([]int32, columns)
	for i := range order {
		order[i] = int32(int64(i) / group)
	}
	c.orders[key] = order
	return order
}

// fit sets target to the affine format with the largest groups that do not cross the matrix's groups. If the matrix's
// groups are larger, their scales are repeated. If there is no such format, fit returns the reason.
func (g *grid) fit() (why string) {
	if !slices.Contains([]int{2, 3, 4, 5, 6, 8}, g.bits) {
		return fmt.Sprintf("no type here has codes of %d bits", g.bits)
	}
	for _, group := range []int{128, 64, 32} {
		if g.order != nil && g.constant(int64(group)) {
			g.target = map[int]quantize.Type{
				2: quantize.Int2, 3: quantize.Int3, 4: quantize.Int4, 5: quantize.Int5, 6: quantize.Int6, 8: quantize.Int8,
			}[g.bits].WithGroup(group)
			return ""
		}
	}
	if g.columns%32 != 0 {
		return fmt.Sprintf("its rows of %d elements are not whole groups of 32, the smallest group size", g.columns)
	}
	for i := range g.columns {
		if g.order == nil || i > 0 && g.order[i] < g.order[i-1] {
			return "its groups are not in order (g_idx: desc_act, actorder), which no type here supports"
		}
	}
	return "its groups are smaller than 32 elements or not aligned to them, which no type here supports"
}

// constant reports whether every aligned range of group columns belongs to one of the matrix's groups.
func (g *grid) constant(group int64) bool {
	if g.columns%group != 0 {
		return false
	}
	if g.inOrder != 0 {
		return g.inOrder%group == 0 || g.inOrder >= g.columns
	}
	for i := int64(0); i < g.columns; i += group {
		for _, o := range g.order[i : i+group] {
			if o != g.order[i] {
				return false
			}
		}
	}
	return true
}

// exact reports whether a type represents all scales and biases exactly. A bias of symmetric codes is its scale times a
// power of two, which changes the exponent alone.
func (g *grid) exact(d quantize.DType) (bool, error) {
	if g.symmetric && d != quantize.F16 {
		return true, nil
	}
	step := max(1<<16/g.groups, 1)
	for row := int64(0); row < g.rows; row += step {
		n := min(step, g.rows-row)
		scales, zeros := make([]float32, n*g.groups), make([]float32, n*g.groups)
		if err := g.read.params(scales, zeros, row, n); err != nil {
			return false, err
		}
		for i, s := range scales {
			if !holds(d, s) || !holds(d, -zeros[i]*s) {
				return false, nil
			}
		}
	}
	return true, nil
}

func holds(d quantize.DType, v float32) bool {
	switch d {
	case quantize.BF16:
		return math.Float32bits(v)&0xffff == 0
	case quantize.F16:
		return float16.Fromfloat32(v).Float32() == v
	}
	return true
}

// eachRow calls f for each row of elements [begin, begin+count), with its codes, scales and zero points, and the range
// of columns.
func (g *grid) eachRow(begin, count int64, f func(codes []uint8, scales, zeros []float32, from, to int64)) error {
	first, end := begin/g.columns, (begin+count+g.columns-1)/g.columns
	n := end - first
	codes := make([]uint8, n*g.columns)
	params := make([]float32, 2*n*g.groups)
	scales, zeros := params[:n*g.groups], params[n*g.groups:]
	if err := g.read.codes(codes, first, n); err != nil {
		return err
	}
	if err := g.read.params(scales, zeros, first, n); err != nil {
		return err
	}
	for r := range n {
		start := (first + r) * g.columns
		f(codes[r*g.columns:][:g.columns], scales[r*g.groups:][:g.groups], zeros[r*g.groups:][:g.groups],
			max(begin-start, 0), min(begin+count-start, g.columns))
	}
	return nil
}

// Floats implements Elements.
func (g *grid) Floats(dst []byte, begin, count int64) error {
	at := 0
	return g.eachRow(begin, count, func(codes []uint8, scales, zeros []float32, from, to int64) {
		for c := from; c < to; c++ {
			o := g.order[c]
			numbers.Put(dst, at, (float32(codes[c])-zeros[o])*scales[o])
			at++
		}
	})
}

// Codes implements Elements.
func (g *grid) Codes(dst quantize.Blocks, begin, count int64) error {
	group := int64(g.target.Group())
	packed := dst.Packed
	wide := make([]byte, 2*4*count/group)
	scale, bias := wide[:len(wide)/2], wide[len(wide)/2:]
	at := 0
	err := g.eachRow(begin, count, func(codes []uint8, scales, zeros []float32, from, to int64) {
		n := (to - from) * int64(g.bits) / 8
		numbers.Pack(packed[:n], codes[from:to], g.bits)
		packed = packed[n:]
		for c := from; c < to; c += group {
			o := g.order[c]
			numbers.Put(scale, at, scales[o])
			numbers.Put(bias, at, -zeros[o]*scales[o])
			at++
		}
	})
	if err != nil {
		return err
	}
	if err := quantize.Cast(dst.Scales, g.dtype, scale, quantize.F32); err != nil {
		return err
	}
	return quantize.Cast(dst.Biases, g.dtype, bias, quantize.F32)
}

// finishWeights completes weights that are read from grids, in place. If the published type of the scales does not
// represent every bias exactly, all weights get scales and biases in F32, because a model's experts become one tensor
// and need the same type.
func (c *Checkpoint) finishWeights(list []Weight) error {
	exact := true
	for i := range list {
		g, dtype := list[i].Read.(*grid), list[i].DType
		switch {
		case g.target == 0:
		case c.HeadersOnly:
			if !g.symmetric && !g.declared && dtype != safetensors.F32 {
				c.assume(assumedScales)
				exact = false
			}
		case exact:
			var err error
			if exact, err = g.exact(quantize.DType(dtype)); err != nil {
				return err
			}
		}
	}
	for i := range list {
		w, g := &list[i], list[i].Read.(*grid)
		w.Type, w.Shape, g.dtype = g.target, []int64{g.rows, g.columns}, quantize.DType(w.DType)
		if w.Type != 0 && !exact {
			w.Scales, g.dtype = safetensors.F32, quantize.F32
		}
	}
	return nil
}

// biasNote describes the result of finishWeights for messages.
func biasNote(list []Weight) string {
	for _, w := range list {
		if w.Scales != "" && w.Scales != w.DType {
			return "; scales and biases in float32, since " + string(w.DType) + " does not hold zero times scale"
		}
	}
	return ""
}

// orderOf sets the group of each column of a grid: from the index if there is one, or else consecutive groups. If the
// index differs from these, the result says so for the format; called is the packer's word for that, and shuffled that
// the configuration has it.
func (c *Checkpoint) orderOf(
	g *grid, index *safetensors.Source, group int64, called string, shuffled bool,
) (note string, err error) {
	consecutive := c.consecutiveGroups(g.columns, group)
	g.order, g.inOrder = consecutive, group
	if index == nil {
		return "", nil
	}
	if err := checkOrder(*index, g.columns); err != nil {
		return "", err
	}
	note = ", not in order (" + called + ")"
	if c.HeadersOnly {
		if !shuffled {
			c.assume(assumedOrder)
			return "", nil
		}
		c.assume(assumedNoOrder)
		g.order, g.inOrder = nil, 0
		return note, nil
	}
	read, err := readOrder(*index, g.columns, g.groups)
	if err != nil || slices.Equal(read, consecutive) {
		return "", err
	}
	g.order, g.inOrder = read, 0
	return note, nil
}

func checkOrder(t safetensors.Source, columns int64) error {
	if t.DType != safetensors.I32 && t.DType != safetensors.I64 || numbers.Count(t.Shape) != columns || len(t.Shape) != 1 {
		return wrong(t, "it is %s %v, but the groups of %d columns are I32 [%d]; download the checkpoint again",
			t.DType, t.Shape, columns, columns)
	}
	if columns > maxColumns {
		return wrong(t, "rows of %d elements are too long", columns)
	}
	return nil
}

// readOrder reads the group of each column.
func readOrder(t safetensors.Source, columns, groups int64) ([]int32, error) {
	buf := make([]byte, t.Size())
	if err := numbers.ReadAt(t, buf, 0); err != nil {
		return nil, wrong(t, "%w", err)
	}
	order, width := make([]int32, columns), len(buf)/int(columns)
	for i := range order {
		v := int64(int32(le.Uint32(buf[i*width:])))
		if width == 8 {
			v = int64(le.Uint64(buf[i*width:]))
		}
		if v < 0 || v >= groups {
			return nil, wrong(t, "column %d is in group %d, but there are scales of %d groups; download the checkpoint again",
				i, v, groups)
		}
		order[i] = int32(v)
	}
	return order, nil
}

const maxColumns = 1 << 24

// isFloat reports whether d is a valid type of scales.
func isFloat(d safetensors.DType) bool {
	return d == safetensors.F16 || d == safetensors.BF16 || d == safetensors.F32
}
