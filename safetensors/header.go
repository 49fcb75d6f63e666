package safetensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"golang.org/x/sync/semaphore"
)

// MaxHeaderSize is the largest supported header in bytes, as in the reference library.
const MaxHeaderSize = limits.TensorHeader

// metadataKey is the only key of a header that is not a tensor's name.
const metadataKey = "__metadata__"

// Header is the decoded header of a file.
type Header struct {
	Tensors    []Tensor          // in data order
	Metadata   map[string]string // nil if absent or empty
	DataOffset int64             // offset of the data region in the file
	Size       int64             // of the file
}

// ReadHeader reads and validates the header of a file of the given size. It does not read the data region. A header
// without tensors is valid.
func ReadHeader(r io.ReaderAt, size int64) (*Header, error) {
	return readHeader(r, size, semaphore.NewWeighted(MaxHeaderSize))
}

// readHeader is ReadHeader of one of several files, whose texts take memory of the bound of all of them.
func readHeader(r io.ReaderAt, size int64, memory *semaphore.Weighted) (*Header, error) {
	n, err := textSize(r, size)
	if err != nil {
		return nil, err
	}
	if err := memory.Acquire(context.Background(), n); err != nil {
		return nil, err
	}
	defer memory.Release(n)
	text, err := readText(r, size, n)
	if err != nil {
		return nil, err
	}
	h := &Header{DataOffset: 8 + int64(len(text)), Size: size}
	if err := h.parse(text); err != nil {
		return nil, err
	}
	if err := h.checkLayout(); err != nil {
		return nil, err
	}
	return h, nil
}

// textSize returns the size of a header's JSON text, which is at most MaxHeaderSize.
func textSize(r io.ReaderAt, size int64) (int64, error) {
	var length [8]byte
	if size < int64(len(length)) {
		return 0, otherKind(r, size, fmt.Errorf("%w: %d bytes, but the header's length alone takes 8; download it again",
			ErrTruncated, size))
	}
	if err := readFull(r, length[:], 0); err != nil {
		return 0, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > MaxHeaderSize {
		return 0, otherKind(r, size, fmt.Errorf("%w: %d bytes, the limit is %d; is this a safetensors file?",
			ErrHeaderTooLarge, n, MaxHeaderSize))
	}
	if int64(n) > size-8 {
		return 0, otherKind(r, size, fmt.Errorf("%w: %d bytes, but the header ends at byte %d; download it again",
			ErrTruncated, size, n+8))
	}
	return int64(n), nil
}

// readText returns the JSON text of a header.
func readText(r io.ReaderAt, size, n int64) ([]byte, error) {
	text := make([]byte, n)
	if err := readFull(r, text, 8); err != nil {
		return nil, err
	}
	// The format requires '{' first, although the reference implementation accepts white space before it. Writing would
	// not preserve that.
	if n == 0 || text[0] != '{' {
		return nil, otherKind(r, size, fmt.Errorf("%w: JSON byte 0: want '{' as the first byte", ErrHeader))
	}
	return text, nil
}

// otherKind returns what the file is, if it is of another kind; else the given error. An empty file is a truncated one.
func otherKind(r io.ReaderAt, size int64, err error) error {
	found, errRead := filekind.Read(r, size)
	if wrong := found.Wrong(filekind.Safetensors, filekind.Empty); errRead == nil && wrong != "" {
		return fmt.Errorf("%w: %s", ErrHeader, wrong)
	}
	return err
}

// readFull fills p. It returns ErrTruncated if the file has shrunk since its size was determined.
func readFull(r io.ReaderAt, p []byte, offset int64) error {
	n, err := r.ReadAt(p, offset)
	switch {
	case n == len(p):
		return nil
	case err == nil || err == io.EOF:
		return fmt.Errorf("%w: it ended at byte %d while the header was read", ErrTruncated, offset+int64(n))
	}
	return fmt.Errorf("read header: %w", err)
}

// parse sets Tensors, in the order of the header, and Metadata. What it keeps does not refer to the text.
func (h *Header) parse(text []byte) error {
	r, err := newJSONReader(text, ErrHeader)
	if err != nil {
		return err
	}
	// Each entry has the key once. Growing the list would take as much again.
	h.Tensors = slices.Grow(h.Tensors, min(bytes.Count(text, []byte(`"data_offsets"`)), limits.Tensors))
	described := false
	err = r.Object(func(key []byte) error {
		if string(key) == metadataKey {
			if described {
				return duplicateEntry(metadataKey)
			}
			described = true
			m, err := parseMetadata(r)
			h.Metadata = m
			if err != nil {
				return fmt.Errorf("%s: %w", metadataKey, err)
			}
			return nil
		}
		if len(h.Tensors) == limits.Tensors {
			return fmt.Errorf("%w: more than %d tensors", ErrHeaderTooLarge, limits.Tensors)
		}
		t, err := parseTensor(r, string(key))
		h.Tensors = append(h.Tensors, t)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		return nil
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return err
	}
	order := orderByName(h.Tensors)
	for i := 1; i < len(order); i++ {
		if name := h.Tensors[order[i]].Name; name == h.Tensors[order[i-1]].Name {
			return duplicateEntry(name)
		}
	}
	return nil
}

func duplicateEntry(name string) error {
	return fmt.Errorf("entry %s: %w: it occurs twice in the header", quote(name), ErrDuplicate)
}

// orderByName returns the indexes of tensors, sorted by name. A map takes ten times its memory.
func orderByName(list []Tensor) []int32 {
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(list[a].Name, list[b].Name) })
	return order
}

func parseMetadata(r *jsonReader) (map[string]string, error) {
	if r.Peek() == 'n' { // the reference implementation accepts null
		return nil, r.Literal("null")
	}
	var m map[string]string
	err := r.Object(func(name []byte) error {
		key := string(name)
		if _, ok := m[key]; ok {
			return fmt.Errorf("%w key %s", ErrDuplicate, quote(key))
		}
		value, err := r.text()
		if err != nil {
			return err
		}
		if m == nil {
			m = make(map[string]string)
		}
		if len(m) == limits.Tensors {
			return fmt.Errorf("%w: more than %d keys", ErrHeaderTooLarge, limits.Tensors)
		}
		m[key] = value
		return nil
	})
	return m, err
}

// parseTensor parses a tensor's entry, which has exactly the format's three keys, in any order. Unknown keys are
// rejected because they could change the meaning of the data.
func parseTensor(r *jsonReader, name string) (Tensor, error) {
	t := Tensor{Name: name}
	if err := checkName(name); err != nil {
		return t, err
	}
	keys := [...]string{"dtype", "shape", "data_offsets"}
	var seen [len(keys)]bool
	err := r.Object(func(key []byte) (err error) {
		i := slices.IndexFunc(keys[:], func(k string) bool { return k == string(key) })
		switch {
		case i < 0:
			return fmt.Errorf("%w: unknown key %s", ErrHeader, quote(string(key)))
		case seen[i]:
			return fmt.Errorf("%w key %q", ErrDuplicate, key)
		}
		seen[i] = true
		switch i {
		case 0:
			t.DType, err = parseDType(r)
		case 1:
			t.Shape, err = parseShape(r)
		case 2:
			t.Begin, t.End, err = parseOffsets(r)
		}
		return err
	})
	if err != nil {
		return t, err
	}
	if i := slices.Index(seen[:], false); i >= 0 {
		return t, fmt.Errorf("%w: missing key %q", ErrHeader, keys[i])
	}
	size, err := sizeOf(t.DType, t.Shape)
	if err != nil {
		return t, err
	}
	if size != t.End-t.Begin {
		return t, fmt.Errorf("%w [%d,%d]: %d bytes, but %s %v takes %d",
			ErrOffsets, t.Begin, t.End, t.End-t.Begin, t.DType, t.Shape, size)
	}
	return t, nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case name == metadataKey:
		return fmt.Errorf("%w: it is reserved", ErrName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: it is not UTF-8", ErrName)
	}
	return nil
}

func parseDType(r *jsonReader) (DType, error) {
	s, err := r.Str()
	if err != nil {
		return "", err
	}
	d, ok := knownDType(s)
	if !ok {
		return "", fmt.Errorf("%w %s", ErrDType, quote(string(s)))
	}
	return d, nil
}

func parseShape(r *jsonReader) ([]int64, error) {
	r.dims = r.dims[:0]
	err := r.Array(func(int) error {
		if len(r.dims) == MaxDims {
			return fmt.Errorf("%w: more than %d dimensions", ErrShape, MaxDims)
		}
		d, err := r.integer(ErrShape)
		r.dims = append(r.dims, d)
		return err
	})
	return append([]int64{}, r.dims...), err
}

func parseOffsets(r *jsonReader) (begin, end int64, err error) {
	var v [2]int64
	n := 0
	err = r.Array(func(int) (err error) {
		if n < len(v) {
			v[n], err = r.integer(ErrOffsets)
		} else {
			err = fmt.Errorf("%w: more than two numbers", ErrOffsets)
		}
		n++
		return err
	})
	switch {
	case err != nil:
	case n < len(v):
		err = fmt.Errorf("%w: want two numbers, found %d", ErrOffsets, n)
	case v[0] > v[1]:
		err = fmt.Errorf("%w [%d,%d]: begin is greater than end", ErrOffsets, v[0], v[1])
	}
	return v[0], v[1], err
}

// checkLayout sorts the tensors by offset and checks that they cover the data region without gaps or overlaps.
func (h *Header) checkLayout() error {
	slices.SortStableFunc(h.Tensors, func(a, b Tensor) int {
		if a.Begin != b.Begin {
			return cmp.Compare(a.Begin, b.Begin)
		}
		return cmp.Compare(a.End, b.End) // an empty tensor comes before the tensor at the same offset
	})
	var end int64
	for i, t := range h.Tensors {
		if t.Begin < end {
			return fmt.Errorf("tensor %s: %w: it begins at %d, before the end of %s at %d",
				quote(t.Name), ErrOverlap, t.Begin, quote(h.Tensors[i-1].Name), end)
		}
		if t.Begin > end {
			return fmt.Errorf("tensor %s: %w: it begins at %d, but the data before it ends at %d",
				quote(t.Name), ErrHole, t.Begin, end)
		}
		end = t.End
	}
	have := h.Size - h.DataOffset
	if end < have {
		return fmt.Errorf("%w: the file has %d bytes, but the header describes %d", ErrTrailing, h.Size, h.DataOffset+end)
	}
	for _, t := range h.Tensors {
		if t.End > have {
			return fmt.Errorf("tensor %s: %w: the file has %d bytes, but the header describes %d; download it again",
				quote(t.Name), ErrTruncated, h.Size, uint64(h.DataOffset)+uint64(end))
		}
	}
	return nil
}
