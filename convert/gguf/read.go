package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/filekind"
)

const (
	magic            = "GGUF"
	alignmentKey     = "general.alignment"
	defaultAlignment = 32
	maxAlignment     = 1 << 20
	maxDims          = 4 // GGML_MAX_DIMS
)

// Read reads the header of a file of the given size.
func Read(r io.ReaderAt, size int64) (*Header, error) {
	p, err := newParser(r, size)
	if err != nil {
		return nil, err
	}
	h, err := p.header()
	if err == nil {
		err = p.place(h)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// ReadMetadata reads the metadata of a file of the given size, and not its tensors.
func ReadMetadata(r io.ReaderAt, size int64) (Metadata, error) {
	p, err := newParser(r, size)
	if err != nil {
		return Metadata{}, err
	}
	_, _, m := p.start()
	return m, p.err
}

// newParser returns a parser of a file that may be one by its first bytes.
func newParser(r io.ReaderAt, size int64) (*parser, error) {
	found, err := filekind.Read(r, size)
	if err != nil {
		return nil, err
	}
	if wrong := found.Wrong(filekind.GGUF); wrong != "" {
		return nil, fmt.Errorf("%w: %s", ErrFormat, wrong)
	}
	p := &parser{size: size, left: min(size, limits.GGUFHeader)}
	p.in = bufio.NewReaderSize(io.NewSectionReader(r, 0, p.left), int(min(p.left, 1<<20)))
	return p, nil
}

// parser reads a header. Its methods return zero values after the first error.
type parser struct {
	in   *bufio.Reader
	size int64 // of the file
	left int64 // bytes that may still be read
	deep int   // arrays within arrays so far
	err  error

	number  [8]byte // the last number
	scratch []byte  // the last part of a string
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %w", ErrFormat, fmt.Errorf(format, args...))
	}
}

// bytes reads n bytes, which are checked against what is left before memory is allocated.
func (p *parser) bytes(n int64) []byte {
	if p.err != nil {
		return nil
	}
	if n > p.left {
		p.short(n)
		return nil
	}
	return p.fill(make([]byte, n))
}

// small reads the bytes of a number; nil after an error. The result is valid until the next call.
func (p *parser) small(n int64) []byte {
	if p.err == nil && n > p.left {
		p.short(n)
	}
	if p.err != nil {
		return nil
	}
	return p.fill(p.number[:n])
}

// fill fills a slice with the next bytes, of which there are enough; nil after an error.
func (p *parser) fill(b []byte) []byte {
	p.left -= int64(len(b))
	if _, err := io.ReadFull(p.in, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			p.fail("it ends inside its header")
		} else {
			p.err = err
		}
		return nil
	}
	return b
}

// at returns the position in the file.
func (p *parser) at() int64 { return min(p.size, limits.GGUFHeader) - p.left }

// short reports that n bytes do not follow: either the file ends, or its header exceeds the limit.
func (p *parser) short(n int64) {
	if p.size > limits.GGUFHeader {
		p.fail("its header has more than %d MiB", limits.GGUFHeader>>20)
		return
	}
	p.fail("it ends inside its header: %d bytes follow, want %d", p.left, n)
}

func (p *parser) uint32() uint32 {
	if b := p.small(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// count reads a 64-bit number that counts things of at least one byte each.
func (p *parser) count(what string, limit int64) int64 {
	b := p.small(8)
	if b == nil {
		return 0
	}
	n := binary.LittleEndian.Uint64(b)
	if n > uint64(limit) {
		p.fail("it has %d %s, more than %d", n, what, limit)
		return 0
	}
	return int64(n)
}

func (p *parser) string() string {
	b := p.small(8)
	if b == nil {
		return ""
	}
	n := binary.LittleEndian.Uint64(b)
	if n > uint64(p.left) {
		p.short(int64(min(n, math.MaxInt64)))
		return ""
	}
	var text strings.Builder
	for text.Grow(int(n)); n > 0 && p.err == nil; {
		part := min(n, maxScratch)
		p.scratch = slices.Grow(p.scratch[:0], int(part))[:part]
		text.Write(p.fill(p.scratch))
		n -= part
	}
	return text.String()
}

// maxScratch bounds the parts in which strings are read, so that one takes only its size.
const maxScratch = 4 << 10

func (p *parser) header() (*Header, error) {
	version, tensors, m := p.start()
	h := &Header{Version: version, Metadata: m}
	if p.err == nil {
		h.Tensors = make([]Tensor, 0, min(tensors, p.left/leastTensor))
	}
	for i := int64(0); i < tensors && p.err == nil; i++ {
		h.Tensors = append(h.Tensors, p.tensor())
	}
	return h, p.err
}

// leastTensor is the size of the smallest description of a tensor.
const leastTensor = 8 + 1 + 4 + 4 + 8

// start reads what a file has before the descriptions of its tensors, and returns their number.
func (p *parser) start() (version int, tensors int64, m Metadata) {
	if b := p.small(4); p.err == nil && string(b) != magic {
		p.fail("it begins with %q, want %q", b, magic)
	}
	version = int(p.uint32())
	switch v := uint32(version); {
	case p.err != nil:
	case v == 1:
		p.fail("version 1 is not supported; convert it again with a current llama.cpp")
	case v&0xffff == 0 && v != 0:
		p.fail("it is big-endian; convert it on a little-endian machine")
	case v != 2 && v != 3:
		p.fail("version %d is not supported; this version of ingot reads 2 and 3", v)
	}
	tensors = p.count("tensors", limits.GGUFTensors)
	return version, tensors, p.metadata(p.count("metadata keys", limits.GGUFKeys))
}

func (p *parser) metadata(keys int64) Metadata {
	m := Metadata{values: map[string]Value{}}
	for i := int64(0); i < keys && p.err == nil; i++ {
		key := p.string()
		if p.err == nil && !isName(key) {
			p.fail("metadata key %.100s is not a name", strconv.Quote(key))
		}
		if _, twice := m.values[key]; twice {
			p.fail("metadata key %.100s exists twice", key)
		}
		kind := Kind(p.uint32())
		v := p.value(kind, 0)
		if p.err != nil && key != "" {
			p.err = fmt.Errorf("%w (metadata %.100s)", p.err, strconv.Quote(key))
		}
		m.keys, m.values[key] = append(m.keys, key), v
	}
	return m
}

// value reads a value that is not nested deeper than depth allows.
func (p *parser) value(kind Kind, depth int) Value {
	if kind != Array {
		return p.elements(kind, 1, depth)
	}
	if depth == limits.GGUFNesting {
		p.fail("arrays are nested deeper than %d levels", limits.GGUFNesting)
		return Value{}
	}
	kind = Kind(p.uint32())
	b := p.small(8)
	if b == nil {
		return Value{}
	}
	n := binary.LittleEndian.Uint64(b)
	// An element takes at least one byte.
	if n > uint64(p.left) {
		p.short(int64(min(n, math.MaxInt64)))
		return Value{}
	}
	v := p.elements(kind, int64(n), depth+1)
	v.IsArray = true
	return v
}

func (p *parser) elements(kind Kind, n int64, depth int) Value {
	v := Value{Kind: kind, Len: int(n)}
	switch size := kind.size(); {
	case kind == String:
		v.strings = make([]string, 0, min(n, p.left/8)) // each has its length
		for i := int64(0); i < n && p.err == nil; i++ {
			v.strings = append(v.strings, p.string())
		}
	case kind == Array:
		for i := int64(0); i < n && p.err == nil; i++ {
			if p.deep++; p.deep > limits.GGUFKeys {
				p.fail("it has more than %d arrays within arrays", limits.GGUFKeys)
			}
			v.arrays = append(v.arrays, p.value(Array, depth))
		}
	case size == 0:
		p.fail("%v does not exist", kind)
	case n > p.left/int64(size):
		p.short(n * int64(size))
	default:
		v.Offset = p.at()
		v.data = p.bytes(n * int64(size))
	}
	return v
}

// place turns offsets into positions in the file, and checks that the tensors lie in it side by side.
func (p *parser) place(h *Header) error {
	alignment := int64(defaultAlignment)
	if _, ok := h.Metadata.Lookup(alignmentKey); ok {
		n, err := h.Metadata.Int(alignmentKey)
		if err != nil {
			return err
		}
		if n < 1 || n > maxAlignment || n&(n-1) != 0 {
			p.fail("metadata %s is %d, want a power of two up to %d", alignmentKey, n, maxAlignment)
			return p.err
		}
		alignment = n
	}
	h.Data = (p.at() + alignment - 1) / alignment * alignment
	if p.disputed(h.Tensors, alignment, p.size-h.Data); p.err != nil {
		return p.err
	}
	names := map[string]bool{}
	for i := range h.Tensors {
		t := &h.Tensors[i]
		switch {
		case names[t.Name]:
			p.fail("tensor %s exists twice", t.Name)
		case t.Offset%alignment != 0:
			p.fail("tensor %s lies at %d, not at a multiple of %d", t.Name, t.Offset, alignment)
		case t.Offset > p.size-h.Data-t.Size:
			p.fail("tensor %s ends at byte %d, but the file has %d; download it again", t.Name,
				uint64(h.Data)+uint64(t.Offset)+uint64(t.Size), p.size)
		}
		if p.err != nil {
			return p.err
		}
		names[t.Name] = true
		t.Offset += h.Data
	}
	return p.overlaps(h.Tensors)
}

func (p *parser) overlaps(tensors []Tensor) error {
	byOffset := slices.Clone(tensors)
	slices.SortStableFunc(byOffset, func(a, b Tensor) int {
		switch {
		case a.Offset != b.Offset:
			return int(max(-1, min(1, a.Offset-b.Offset)))
		default:
			return int(max(-1, min(1, a.Size-b.Size)))
		}
	})
	for i := 1; i < len(byOffset); i++ {
		if a, b := byOffset[i-1], byOffset[i]; a.Offset+a.Size > b.Offset {
			p.fail("tensors %s and %s overlap", a.Name, b.Name)
		}
	}
	return p.err
}
