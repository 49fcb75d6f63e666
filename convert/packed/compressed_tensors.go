package packed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/safetensors"
)

// compressed-tensors stores a linear layer [out, in] of integers as X.weight_packed I32 [out, in*bits/32]
// (pack-quantized) with X.weight_shape I64 [2], or as X.weight I8 [out, in] (int-quantized). It adds X.weight_scale
// [out, groups], with one group per row if scales are per channel; X.weight_zero_point, packed along the rows, unless
// it is symmetric; and X.weight_g_idx I32 [in] if actorder moved columns. Codes are signed: 2^(bits-1) is added to
// codes and zero points before packing, the first in the lowest bits. Codes of 3, 5, 6 and 7 bits cross words; earlier
// versions left the remaining bits of each word unused.
// https://github.com/vllm-project/compressed-tensors/tree/0.20.0/src/compressed_tensors/compressors
// (pack_quantized/helpers.py)

func findPacked(c *Checkpoint) (Found, error) {
	var f Found
	var list []Weight
	config, from, err := c.readPacked()
	if err != nil {
		return f, err
	}
	kinds := map[string]int{}
	for _, t := range c.Tensors() {
		name, packed := strings.CutSuffix(t.Name, ".weight_packed")
		whole := false
		if !packed {
			name, whole = strings.CutSuffix(t.Name, ".weight")
		}
		if packed && t.DType != safetensors.I32 || !packed && !(whole && t.DType == safetensors.I8) ||
			c.isDeepseekFP4(t) {
			continue
		}
		l := packedLayer{name: name, codesIn: c.find(t.Name), config: config}
		m, err := l.matrix(c)
		if err != nil {
			return f, err
		}
		kinds[m.Format]++
		list = append(list, m)
	}
	if len(list) == 0 {
		return f, nil
	}
	if err := c.finishWeights(list); err != nil {
		return f, err
	}
	f.Weights = list
	f.What = counted(kinds) + biasNote(f.Weights)
	first := list[0].Parts
	f.From = append(from, fmt.Sprintf("%s (%s %v) with %s (%s %v)",
		first[0].Name, first[0].DType, first[0].Shape, first[1].Name, first[1].DType, first[1].Shape))
	f.Ignored = c.activationScales()
	return f, nil
}

// packedLayer is a layer being read. Its codes and scales are stored by row.
type packedLayer struct {
	name          string
	config        []packedArgs
	codesIn       *safetensors.Source
	scales        *safetensors.Source
	shape         *safetensors.Source // nil if codes are I8
	zeros         *safetensors.Source // nil if the layer is symmetric
	index         *safetensors.Source // nil if groups are consecutive
	rows, columns int64
	words         int64 // per row
	groups, group int64
	share         int64 // rows with the same scales and zero points
	bits          int
	bytes         bool // codes are I8
	dense         bool // codes cross words
}

func (l packedLayer) matrix(c *Checkpoint) (Weight, error) {
	t := l.codesIn
	if l.scales = c.find(l.name + ".weight_scale"); l.scales == nil {
		return Weight{}, wrong(*t, "it holds codes of compressed-tensors, but %s.weight_scale is missing; "+
			"download the checkpoint again", l.name)
	}
	if len(t.Shape) != 2 || numbers.Count(t.Shape) == 0 {
		return Weight{}, wrong(*t, "it has shape %v, want a matrix; download the checkpoint again", t.Shape)
	}
	m := Weight{Name: l.name + ".weight", DType: l.scales.DType}
	l.rows, l.words = t.Shape[0], t.Shape[1]
	if err := l.size(c); err != nil {
		return m, err
	}
	if err := l.grouping(c); err != nil {
		return m, err
	}
	m.Format = fmt.Sprintf("compressed-tensors int%d, %s", l.bits, l.what())
	g := &grid{rows: l.rows, columns: l.columns, bits: l.bits, groups: l.groups, symmetric: l.zeros == nil,
		read: l}
	m.Parts = l.parts()
	note, err := c.orderOf(g, l.index, l.group, "actorder", true)
	if err != nil {
		return m, err
	}
	m.Format += note
	m.Why, m.Read = g.fit(), g
	return m, nil
}

// parts lists the layer's tensors.
func (l *packedLayer) parts() []safetensors.Source {
	list := make([]safetensors.Source, 0, 5)
	for _, t := range []*safetensors.Source{l.codesIn, l.scales, l.shape, l.zeros, l.index} {
		if t != nil {
			list = append(list, *t)
		}
	}
	return slices.Clone(list)
}

// size determines bits and columns.
func (l *packedLayer) size(c *Checkpoint) error {
	t := *l.codesIn
	if t.DType == safetensors.I8 {
		l.bits, l.bytes, l.columns = 8, true, l.words
		return nil
	}
	if l.shape = c.find(l.name + ".weight_shape"); l.shape == nil {
		return wrong(t, "it holds packed codes, but %s.weight_shape is missing; download the checkpoint again", l.name)
	}
	shape := *l.shape
	if numbers.Count(shape.Shape) != 2 || shape.DType != safetensors.I64 && shape.DType != safetensors.I32 {
		return wrong(shape, "it is %s %v, want I64 [2]; download the checkpoint again", shape.DType, shape.Shape)
	}
	rows, columns := l.rows, int64(0)
	if c.HeadersOnly {
		columns = l.inferColumns()
	}
	if columns == 0 {
		var err error
		if rows, columns, err = readShape(shape); err != nil {
			return err
		}
	}
	if rows != l.rows || columns <= 0 || columns > maxColumns {
		return wrong(shape, "it is [%d %d], but the codes have %d rows of %d words; download the checkpoint again",
			rows, columns, l.rows, l.words)
	}
	l.columns = columns
	for bits := 1; bits <= 8; bits++ {
		dense := packedLayer{bits: bits, dense: true}.wordsFor(columns) == l.words
		padded := packedLayer{bits: bits}.wordsFor(columns) == l.words
		if (dense || padded) && (l.bits == 0 || l.configured(bits)) {
			l.bits, l.dense = bits, dense
		}
	}
	if l.bits == 0 {
		return wrong(t, "rows of %d words cannot hold %d elements of 1 to 8 bits; download the checkpoint again",
			l.words, columns)
	}
	if len(l.config) > 0 && !l.configured(l.bits) {
		return wrong(t, "rows of %d words for %d elements have %d bits, but no group of config.json does (num_bits %v); "+
			"correct the configuration, or download the checkpoint again",
			l.words, columns, l.bits, l.widths())
	}
	return nil
}

func readShape(shape safetensors.Source) (rows, columns int64, err error) {
	buf := make([]byte, shape.Size())
	if err := numbers.ReadAt(shape, buf, 0); err != nil {
		return 0, 0, wrong(shape, "%w", err)
	}
	if shape.DType == safetensors.I64 {
		return int64(le.Uint64(buf)), int64(le.Uint64(buf[8:])), nil
	}
	return int64(int32(le.Uint32(buf))), int64(int32(le.Uint32(buf[4:]))), nil
}

// inferColumns returns the number of columns that follows from the scales and a configured group, or from words that
// are full if there is a scale for each row; 0 if neither fits.
func (l packedLayer) inferColumns() int64 {
	for _, a := range l.config {
		if a.Bits < 1 || a.Bits > 8 || len(l.scales.Shape) != 2 {
			continue
		}
		columns := l.words * 32 / int64(a.Bits)
		if a.Group != nil && *a.Group > 0 {
			columns = l.scales.Shape[1] * *a.Group
		}
		for _, dense := range []bool{true, false} {
			if columns > 0 && (packedLayer{bits: a.Bits, dense: dense}).wordsFor(columns) == l.words {
				return columns
			}
		}
	}
	return 0
}

// wordsFor returns the number of words for n codes.
func (l packedLayer) wordsFor(n int64) int64 {
	word, shift := l.position(n - 1)
	return word + (int64(shift)+int64(l.bits)+31)/32
}

// position returns the word that code i starts in, and the code's lowest bit there.
func (l packedLayer) position(i int64) (word int64, shift uint) {
	if l.dense {
		return i * int64(l.bits) / 32, uint(i * int64(l.bits) % 32)
	}
	per := int64(32 / l.bits)
	return i / per, uint(i % per * int64(l.bits))
}

func (l packedLayer) codes(dst []uint8, row, rows int64) error {
	if l.bytes {
		if err := numbers.ReadAt(*l.codesIn, dst, row*l.columns); err != nil {
			return err
		}
		for i := range dst {
			dst[i] ^= 0x80 // signed
		}
		return nil
	}
	buf := make([]byte, 4*rows*l.words+8)
	if err := numbers.ReadAt(*l.codesIn, buf[:4*rows*l.words], 4*row*l.words); err != nil {
		return err
	}
	mask := uint64(1)<<l.bits - 1
	for r := range rows {
		for c := range l.columns {
			word, shift := l.position(c)
			dst[r*l.columns+c] = uint8(le.Uint64(buf[4*(r*l.words+word):]) >> shift & mask)
		}
	}
	return nil
}

func (l packedLayer) params(scales, zeros []float32, row, rows int64) error {
	if l.share == 1 {
		return l.lines(scales, zeros, row, rows)
	}
	first := row / l.share
	n := (row+rows-1)/l.share - first + 1
	s, z := make([]float32, n*l.groups), make([]float32, n*l.groups)
	if err := l.lines(s, z, first, n); err != nil {
		return err
	}
	for r := range rows {
		from := ((row+r)/l.share - first) * l.groups
		copy(scales[r*l.groups:][:l.groups], s[from:])
		copy(zeros[r*l.groups:][:l.groups], z[from:])
	}
	return nil
}

// lines reads whole lines of scales and zero points.
func (l packedLayer) lines(scales, zeros []float32, row, rows int64) error {
	width := int64(l.scales.DType.Bits() / 8)
	buf := make([]byte, rows*l.groups*width)
	if err := numbers.ReadAt(*l.scales, buf, row*l.groups*width); err != nil {
		return err
	}
	if err := numbers.Floats(scales, l.scales.DType, buf); err != nil {
		return err
	}
	middle := float32(int(1) << (l.bits - 1))
	switch {
	case l.zeros == nil:
		for i := range zeros {
			zeros[i] = middle
		}
		return nil
	case l.zeros.DType == safetensors.I8:
		signed := make([]byte, rows*l.groups)
		if err := numbers.ReadAt(*l.zeros, signed, row*l.groups); err != nil {
			return err
		}
		for i, z := range signed {
			zeros[i] = float32(int8(z)) + middle
		}
		return nil
	}
	first, _ := l.position(row)
	last, shift := l.position(row + rows - 1)
	if int(shift)+l.bits > 32 {
		last++
	}
	packed := make([]byte, 4*(last-first+2)*l.groups)
	if err := numbers.ReadAt(*l.zeros, packed[:4*(last-first+1)*l.groups], 4*first*l.groups); err != nil {
		return err
	}
	mask := uint64(1)<<l.bits - 1
	for r := range rows {
		word, shift := l.position(row + r)
		for g := range l.groups {
			at := func(w int64) uint64 { return uint64(le.Uint32(packed[4*((w-first)*l.groups+g):])) }
			zeros[r*l.groups+g] = float32((at(word) | at(word+1)<<32) >> shift & mask)
		}
	}
	return nil
}
