package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The data region is aligned to smallAlign, which suffices for vector loads. If it contains a tensor of at least
// largeTensor bytes, it is aligned to largeAlign, the page size of Apple's processors and a multiple of the common 4
// KiB, so that it can be memory-mapped and passed to a device without a copy.
const (
	smallAlign  = 64
	largeAlign  = 16 << 10
	largeTensor = 1 << 20

	copySize = 1 << 20 // bytes per read and write
)

// EncodeHeader lays out the tensors in the given order, without gaps. It returns everything before the data region
// (length, JSON and padding), and the tensors with Begin and End set; it ignores these fields of its argument. The
// result is deterministic: metadata is sorted by key, and omitted if empty.
//
// Only the start of the data region is aligned, because the format allows no gaps. To align every tensor, the caller
// orders them by decreasing element width.
func EncodeHeader(tensors []Tensor, metadata map[string]string) (header []byte, out []Tensor, err error) {
	out, err = layOut(tensors)
	if err != nil {
		return nil, nil, err
	}
	text, err := headerText(out, metadata)
	if err != nil {
		return nil, nil, err
	}
	align := smallAlign
	for _, t := range out {
		if t.End-t.Begin >= largeTensor {
			align = largeAlign
		}
	}
	if pad := (8 + len(text)) % align; pad != 0 {
		text = append(text, bytes.Repeat([]byte{' '}, align-pad)...)
	}
	if len(text) > MaxHeaderSize {
		return nil, nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrHeaderTooLarge, len(text), MaxHeaderSize)
	}
	header = binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(text)), uint64(len(text)))
	return append(header, text...), out, nil
}

// layOut validates the tensors and sets their offsets.
func layOut(tensors []Tensor) ([]Tensor, error) {
	out := make([]Tensor, len(tensors))
	seen := make(map[string]bool, len(tensors))
	var end int64
	for i, t := range tensors {
		err := checkName(t.Name)
		if err == nil && seen[t.Name] {
			err = fmt.Errorf("%w: two tensors have this name", ErrDuplicate)
		}
		var size int64
		if err == nil {
			size, err = sizeOf(t.DType, t.Shape)
		}
		if err == nil && size > math.MaxInt64-MaxHeaderSize-8-end {
			err = fmt.Errorf("%w: the size of the file overflows", ErrShape)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
		seen[t.Name] = true
		t.Shape = append([]int64{}, t.Shape...)
		t.Begin, t.End = end, end+size
		out[i], end = t, t.End
	}
	return out, nil
}

// headerText returns compact JSON with keys in the order of the reference library.
func headerText(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	b := []byte{'{'}
	if len(metadata) > 0 {
		b = append(appendString(b, metadataKey), ":{"...)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			value := metadata[key]
			if !utf8.ValidString(key) || !utf8.ValidString(value) {
				return nil, fmt.Errorf("%s: %w: key %s or its value is not UTF-8", metadataKey, ErrHeader, quote(key))
			}
			b = appendString(appendComma(b, i), key)
			b = appendString(append(b, ':'), value)
		}
		b = append(b, '}')
	}
	for _, t := range tensors {
		b = appendString(appendComma(b, len(b)-1), t.Name)
		b = appendString(append(b, `:{"dtype":`...), string(t.DType))
		b = append(b, `,"shape":[`...)
		for i, d := range t.Shape {
			b = strconv.AppendInt(appendComma(b, i), d, 10)
		}
		b = strconv.AppendInt(append(b, `],"data_offsets":[`...), t.Begin, 10)
		b = strconv.AppendInt(append(b, ','), t.End, 10)
		b = append(b, "]}"...)
	}
	return append(b, '}'), nil
}

// appendComma appends a comma before every item except the first.
func appendComma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

// appendString appends a JSON string with minimal escaping, like the reference library.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for {
		i := strings.IndexFunc(s, func(c rune) bool { return c < 0x20 || c == '"' || c == '\\' })
		if i < 0 {
			return append(append(b, s...), '"')
		}
		b = append(b, s[:i]...)
		c := s[i]
		if j := strings.IndexByte("\"\\\b\f\n\r\t", c); j >= 0 {
			b = append(b, '\\', `"\bfnrt`[j])
		} else {
			b = fmt.Appendf(b, `\u%04x`, c)
		}
		s = s[i+1:]
	}
}

// Write writes a complete file: the header from EncodeHeader, then the bytes of data(i) for each i, whose number must
// match dtype and shape of tensors[i]. It calls data once per tensor, in order, after it has written the tensors
// before; it does not close the readers. After an error the output is invalid.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string, data func(i int) (io.Reader, error)) error {
	header, out, err := EncodeHeader(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	var largest int64
	for _, t := range out {
		largest = max(largest, t.Size())
	}
	buffer := make([]byte, max(1, min(largest, copySize)))
	for i, t := range out {
		r, err := data(i)
		if err == nil {
			err = copyExactly(w, r, t.Size(), buffer)
		}
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(t.Name), err)
		}
	}
	return nil
}

// copyExactly copies size bytes and checks that r ends there.
func copyExactly(w io.Writer, r io.Reader, size int64, buffer []byte) error {
	if r == nil {
		return fmt.Errorf("%w: no reader", ErrDataSize)
	}
	// The struct hides ReadFrom, which some writers implement with a small buffer of their own.
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(r, size), buffer)
	if err != nil {
		return err
	}
	if n < size {
		return fmt.Errorf("%w: the reader ended after %d bytes of %d", ErrDataSize, n, size)
	}
	switch n, err := io.CopyBuffer(io.Discard, io.LimitReader(r, 1), buffer[:1]); {
	case err != nil:
		return err
	case n > 0:
		return fmt.Errorf("%w: the reader has more than %d bytes", ErrDataSize, size)
	}
	return nil
}
