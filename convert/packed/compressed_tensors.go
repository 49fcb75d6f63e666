package packed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/limits/pyjson"
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
	var list []matrix
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
		l := packedLayer{name: name, codesIn: t, config: config}
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
	if f.Weights, err = finishWeights(list); err != nil {
		return f, err
	}
	f.What = counted(kinds) + biasNote(f.Weights)
	first := list[0].Parts
	f.From = append(from, fmt.Sprintf("%s (%s %v) with %s (%s %v)",
		first[0].Name, first[0].DType, first[0].Shape, first[1].Name, first[1].DType, first[1].Shape))
	f.Ignored = c.activationScales()
	return f, nil
}

// packedArgs is the configuration of a group of layers.
type packedArgs struct {
	Bits     int    `json:"num_bits"`
	Type     string `json:"type"`
	Strategy string `json:"strategy"`
	Group    *int64 `json:"group_size"`
}

// readPacked reads the groups of layers, or returns nil if the configuration has none.
func (c *Checkpoint) readPacked() (args []packedArgs, from []string, err error) {
	if c.HF == nil || c.method() != "compressed-tensors" && c.method() != "compressed_tensors" {
		return nil, nil, nil
	}
	var q struct {
		Format string `json:"format"`
		Groups map[string]struct {
			Weights *packedArgs `json:"weights"`
		} `json:"config_groups"`
	}
	if err := pyjson.Unmarshal(c.HF, &q); err != nil {
		return nil, nil, c.wrongConfig(c.hfKey, "%w", err)
	}
	from = append(from, fmt.Sprintf("config.json %s.quant_method = %q", c.hfKey, c.method()))
	if q.Format != "" {
		from = append(from, fmt.Sprintf("config.json %s.format = %q", c.hfKey, q.Format))
	}
	for _, name := range slices.Sorted(maps.Keys(q.Groups)) {
		if w := q.Groups[name].Weights; w != nil {
			args = append(args, *w)
			from = append(from, fmt.Sprintf("config.json %s.config_groups.%s.weights: %d bits, %s",
				c.hfKey, name, w.Bits, w.Strategy))
		}
	}
	return args, from, nil
}

// packedLayer is a layer being read. Its codes and scales are stored by row.
type packedLayer struct {
	name          string
	config        []packedArgs
	codesIn       safetensors.Source
	scales        safetensors.Source
	zeros         safetensors.Source // if File is nil, the layer is symmetric
	index         safetensors.Source // if File is nil, groups are consecutive
	rows, columns int64
	words         int64 // per row
	groups, group int64
	bits          int
	bytes         bool // codes are I8
	dense         bool // codes cross words
}

func (l packedLayer) matrix(c *Checkpoint) (matrix, error) {
	var ok bool
	t := l.codesIn
	if l.scales, ok = c.Lookup(l.name + ".weight_scale"); !ok {
		return matrix{}, wrong(t, "it holds codes of compressed-tensors, but %s.weight_scale is missing; "+
			"download the checkpoint again", l.name)
	}
	if len(t.Shape) != 2 || elements(t.Shape) == 0 {
		return matrix{}, wrong(t, "it has shape %v, want a matrix; download the checkpoint again", t.Shape)
	}
	m := matrix{Weight: Weight{Name: l.name + ".weight", DType: l.scales.DType, Parts: []safetensors.Source{t, l.scales}}}
	l.rows, l.words = t.Shape[0], t.Shape[1]
	if err := l.size(c, &m); err != nil {
		return m, err
	}
	if err := l.grouping(c, &m); err != nil {
		return m, err
	}
	what := fmt.Sprintf("groups of %d", l.group)
	if l.groups == 1 {
		what = "one scale a row"
	}
	m.Format = fmt.Sprintf("compressed-tensors int%d, %s", l.bits, what)
	order, err := m.order(l.index, l.columns, l.group, l.groups, "actorder")
	if err != nil {
		return m, err
	}
	m.grid = &grid{rows: l.rows, columns: l.columns, bits: l.bits, order: order, groups: l.groups, read: l}
	m.Why = m.grid.fit()
	return m, nil
}

// size determines bits and columns.
func (l *packedLayer) size(c *Checkpoint, m *matrix) error {
	t := l.codesIn
	if t.DType == safetensors.I8 {
		l.bits, l.bytes, l.columns = 8, true, l.words
		return nil
	}
	shape, ok := c.Lookup(l.name + ".weight_shape")
	if !ok {
		return wrong(t, "it holds packed codes, but %s.weight_shape is missing; download the checkpoint again", l.name)
	}
	m.Parts = append(m.Parts, shape)
	if elements(shape.Shape) != 2 || shape.DType != safetensors.I64 && shape.DType != safetensors.I32 {
		return wrong(shape, "it is %s %v, want I64 [2]; download the checkpoint again", shape.DType, shape.Shape)
	}
	buf := make([]byte, shape.Size())
	if err := readAt(shape, buf, 0); err != nil {
		return wrong(shape, "%w", err)
	}
	rows, columns := int64(int32(le.Uint32(buf))), int64(int32(le.Uint32(buf[len(buf)/2:])))
	if shape.DType == safetensors.I64 {
		rows, columns = int64(le.Uint64(buf)), int64(le.Uint64(buf[8:]))
	}
	if rows != l.rows || columns <= 0 || columns > maxColumns {
		return wrong(shape, "it is [%d %d], but the codes have %d rows of %d words; download the checkpoint again",
			rows, columns, l.rows, l.words)
	}
	l.columns = columns
	for bits := 2; bits <= 8; bits++ {
		dense := packedLayer{bits: bits, dense: true}.wordsFor(columns) == l.words
		padded := packedLayer{bits: bits}.wordsFor(columns) == l.words
		if (dense || padded) && (l.bits == 0 || l.configured(bits)) {
			l.bits, l.dense = bits, dense
		}
	}
	if l.bits == 0 {
		return wrong(t, "rows of %d words cannot hold %d elements of 2 to 8 bits; download the checkpoint again",
			l.words, columns)
	}
	if len(l.config) > 0 && !l.configured(l.bits) {
		return wrong(t, "rows of %d words for %d elements have %d bits, but no group of config.json does (num_bits %v); "+
			"correct the configuration, or download the checkpoint again",
			l.words, columns, l.bits, l.widths())
	}
	return nil
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

func (l *packedLayer) widths() (list []int) {
	for _, a := range l.config {
		list = append(list, a.Bits)
	}
	return list
}

func (l *packedLayer) configured(bits int) bool { return slices.Contains(l.widths(), bits) }

// grouping finds scales, zero points and the group index.
func (l *packedLayer) grouping(c *Checkpoint, m *matrix) error {
	s := l.scales
	if !isFloat(s.DType) {
		return wrong(s, "it is %s, want F16, BF16 or F32; download the checkpoint again", s.DType)
	}
	if len(s.Shape) != 2 && len(s.Shape) != 1 || s.Shape[0] != l.rows || elements(s.Shape) == 0 {
		return wrong(s, "it has shape %v, want scales for each of the weight's %d rows; download the checkpoint again",
			s.Shape, l.rows)
	}
	l.groups = elements(s.Shape) / l.rows
	if l.groups > l.columns || !l.findGroup() {
		return wrong(s, "it has %d groups, but no group_size of config.json (%s) gives that for rows of %d elements; "+
			"correct the configuration, or download the checkpoint again",
			l.groups, l.sizes(), l.columns)
	}
	if z, ok := c.Lookup(l.name + ".weight_zero_point"); ok {
		l.zeros = z
		m.Parts = append(m.Parts, z)
		packed := z.DType == safetensors.I32 && elements(z.Shape) == l.wordsFor(l.rows)*l.groups
		if !packed && !(z.DType == safetensors.I8 && elements(z.Shape) == l.rows*l.groups) {
			return wrong(z, "it is %s %v, want I32 [%d %d] or I8 [%d %d]; download the checkpoint again",
				z.DType, z.Shape, l.wordsFor(l.rows), l.groups, l.rows, l.groups)
		}
	}
	l.index, _ = c.Lookup(l.name + ".weight_g_idx")
	return nil
}

// findGroup sets the group size to the configured one that matches the number of scales per row.
func (l *packedLayer) findGroup() bool {
	if len(l.config) == 0 {
		l.group = (l.columns + l.groups - 1) / l.groups
		return true
	}
	for _, a := range l.config {
		l.group = l.columns
		if a.Group != nil && *a.Group > 0 {
			l.group = *a.Group
		}
		if (l.columns+l.group-1)/l.group == l.groups {
			return true
		}
	}
	return false
}

func (l *packedLayer) sizes() string {
	var out []string
	for _, a := range l.config {
		if a.Group == nil || *a.Group <= 0 {
			out = append(out, "one a row")
		} else {
			out = append(out, fmt.Sprint(*a.Group))
		}
	}
	return strings.Join(out, ", ")
}

func (l packedLayer) codes(dst []uint8, row, rows int64) error {
	if l.bytes {
		if err := readAt(l.codesIn, dst, row*l.columns); err != nil {
			return err
		}
		for i := range dst {
			dst[i] ^= 0x80 // signed
		}
		return nil
	}
	buf := make([]byte, 4*rows*l.words+8)
	if err := readAt(l.codesIn, buf[:4*rows*l.words], 4*row*l.words); err != nil {
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
	width := int64(l.scales.DType.Bits() / 8)
	buf := make([]byte, rows*l.groups*width)
	if err := readAt(l.scales, buf, row*l.groups*width); err != nil {
		return err
	}
	if err := floats(scales, l.scales.DType, buf); err != nil {
		return err
	}
	middle := float32(int(1) << (l.bits - 1))
	switch {
	case l.zeros.File == nil:
		for i := range zeros {
			zeros[i] = middle
		}
		return nil
	case l.zeros.DType == safetensors.I8:
		signed := make([]byte, rows*l.groups)
		if err := readAt(l.zeros, signed, row*l.groups); err != nil {
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
	if err := readAt(l.zeros, packed[:4*(last-first+1)*l.groups], 4*first*l.groups); err != nil {
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
