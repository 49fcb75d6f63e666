package wire

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/klauspost/compress/zstd"
)

// coding is a content coding of request bodies (RFC 9110, 8.4.1).
type coding struct {
	memory int64 // of a decoder, in bytes; 0: not counted
	open   func(io.Reader) (io.ReadCloser, error)
}

var codings = map[string]coding{
	"gzip":    {0, func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }},
	"x-gzip":  {0, func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }},
	"deflate": {0, zlib.NewReader},
	"zstd":    {limits.BodyWindow + 2<<20, newZstd}, // the window, and a block
}

func newZstd(r io.Reader) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(limits.BodyWindow))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// acceptedCodings is the header Accept-Encoding of a response that refuses a coding.
var acceptedCodings = strings.Join(slices.Sorted(maps.Keys(codings)), ", ")

// codingsOf returns the names of a body's codings in the order in which they were applied.
func codingsOf(h http.Header) (names []string) {
	for _, line := range h.Values("Content-Encoding") {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
				names = append(names, name)
			}
		}
	}
	return names
}

// Plain returns an error if a request's body is compressed.
func Plain(r *http.Request) error {
	if names := codingsOf(r.Header); len(names) > 0 {
		return Errorf(http.StatusUnsupportedMediaType, "Content-Encoding %s is not supported for files: send the file itself",
			Clip(strings.Join(names, ", ")))
	}
	return nil
}

// decompress replaces a compressed body by what it decodes to, at most that many bytes after each step.
func (b *body) decompress(r *http.Request, most int64) error {
	names := codingsOf(r.Header)
	if len(names) > limits.BodyCodings {
		return Errorf(http.StatusUnsupportedMediaType, "Content-Encoding names %d codings, at most %d are allowed",
			len(names), limits.BodyCodings)
	}
	for _, name := range slices.Backward(names) {
		c, known := codings[name]
		if !known {
			return Errorf(http.StatusUnsupportedMediaType, "Content-Encoding %s is not supported: use %s, or none",
				Clip(name), acceptedCodings)
		}
		b.decoders += c.memory
		if err := b.reserve(0); err != nil {
			return err
		}
		b.ReadCloser = &decoded{from: &source{r: b.ReadCloser}, name: name, coding: c, most: most, left: most}
	}
	if len(names) > 0 {
		r.Header.Del("Content-Encoding")
		r.ContentLength = -1
	}
	return nil
}

// source remembers the error of a reader, which a decoder may replace by its own.
type source struct {
	r   io.ReadCloser
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.err = err
	return n, err
}

// decoded is what a compressed body decodes to. It reads nothing before the first Read.
type decoded struct {
	from       *source
	name       string
	coding     coding
	most, left int64
	r          io.ReadCloser
}

func (d *decoded) Read(p []byte) (n int, err error) {
	if d.r == nil {
		if d.r, err = d.coding.open(d.from); err != nil {
			d.r = nil
			return 0, d.failure(err)
		}
	}
	if int64(len(p)) > d.left+1 {
		p = p[:d.left+1]
	}
	n, err = d.r.Read(p)
	if d.left -= int64(n); d.left < 0 {
		return n + int(d.left), &http.MaxBytesError{Limit: d.most}
	}
	return n, d.failure(err)
}

// failure returns the error of the body itself, or says that it is not what its header says.
func (d *decoded) failure(err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case d.from.err != nil && d.from.err != io.EOF:
		return d.from.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return BadRequest("the %s body ends too early", d.name)
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return BadRequest("the zstd body needs a window of more than %d bytes: compress it with a lower level",
			limits.BodyWindow)
	}
	return BadRequest("the body is not valid %s", d.name)
}

func (d *decoded) Close() error {
	if d.r != nil {
		_ = d.r.Close() // reports what Read has reported
	}
	return d.from.r.Close()
}
