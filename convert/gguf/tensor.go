package gguf

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ingotml/ingot/quantize/ggml"
)

// tensor reads a description. Its Offset is still relative to the data region.
func (p *parser) tensor() Tensor {
	t := Tensor{Name: p.string()}
	if p.err == nil && (!isName(t.Name) || len(t.Name) > maxName) {
		p.fail("tensor name %.100s is empty, not a line of UTF-8, or longer than %d bytes", strconv.Quote(t.Name), maxName)
	}
	dims := p.uint32()
	if dims > maxDims {
		p.fail("tensor %s has %d dimensions, more than %d", t.Name, dims, maxDims)
		return t
	}
	elements := int64(1)
	t.Shape = make([]int64, 0, dims)
	for range dims {
		b := p.small(8)
		if b == nil {
			return t
		}
		n := binary.LittleEndian.Uint64(b)
		if n > math.MaxInt64 || n > 0 && elements > math.MaxInt64/8/int64(n) {
			p.fail("tensor %s has too many elements", t.Name)
			return t
		}
		elements *= int64(n)
		t.Shape = append(t.Shape, int64(n))
	}
	t.Type = ggml.Type(p.uint32())
	if b := p.small(8); b != nil {
		offset := binary.LittleEndian.Uint64(b)
		if offset > math.MaxInt64 {
			p.fail("tensor %s lies at %d, outside of the file", t.Name, offset)
		}
		t.Offset = int64(offset)
	}
	if p.err == nil {
		p.measure(&t, elements)
	}
	slices.Reverse(t.Shape)
	return t
}

// isName reports whether a text can name something in a message: a line of UTF-8.
func isName(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// maxName bounds a tensor's name in bytes. llama.cpp's own bound is 64.
const maxName = 1024

// measure sets the tensor's size. Its shape is still in the order of the file.
func (p *parser) measure(t *Tensor, elements int64) {
	if err := t.Type.Check(); err != nil {
		p.fail("tensor %s: %w; %s", t.Name, err, useOther)
		return
	}
	block, size := t.Type.Block()
	row := int64(1)
	if len(t.Shape) > 0 {
		row = t.Shape[0]
	}
	if row%int64(block) != 0 {
		p.fail("tensor %s has rows of %d elements, not whole blocks of %d (%v)", t.Name, row, block, t.Type)
		return
	}
	t.Size = elements / int64(block) * int64(size) // elements are bounded, and no type has more than 8 bytes for one
}
