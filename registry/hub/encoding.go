package hub

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/registry/redact"
)

// decode lets a response's body deliver what was compressed on the way, although nobody asked for it: some proxies
// compress all the same. The length is then not known, and a part of a compressed body is of no use.
func decode(resp *http.Response) error {
	coding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	if coding == "" || coding == "identity" || resp.Request.Method == http.MethodHead {
		return nil
	}
	switch {
	case resp.StatusCode == http.StatusPartialContent:
		return errCompressed
	case coding != "gzip" && coding != "x-gzip" && coding != "deflate":
		return fmt.Errorf("the answer is compressed as %q, which was not asked for; a proxy or mirror does so: "+
			"use another one", redact.Clip(coding))
	}
	resp.ContentLength = -1
	resp.Body = &decodedBody{body: resp.Body, deflate: coding == "deflate"}
	return nil
}

// errCompressed is a part of a compressed body.
var errCompressed = errors.New("the server compresses parts of files")

// decodedBody is a body without its compression.
type decodedBody struct {
	body    io.ReadCloser
	deflate bool
	plain   io.Reader // nil = nothing was read
	failed  error
}

func (b *decodedBody) Read(p []byte) (int, error) {
	if b.plain == nil && b.failed == nil {
		b.failed = b.start()
	}
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.plain.Read(p)
	var damaged flate.CorruptInputError
	if errors.As(err, &damaged) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zlib.ErrChecksum) {
		err = fmt.Errorf("%w: %w", errBody, err)
	}
	return n, err
}

func (b *decodedBody) start() (err error) {
	r := bufio.NewReader(b.body)
	head, err := r.Peek(2)
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF // an empty body
	case err != nil:
		return err
	case !b.deflate:
		b.plain, err = gzip.NewReader(r)
	case (int(head[0])<<8|int(head[1]))%31 == 0 && head[0]&0x0f == 8: // RFC 1950; some servers send RFC 1951 instead
		b.plain, err = zlib.NewReader(r)
	default:
		b.plain = flate.NewReader(r)
	}
	if err != nil {
		return fmt.Errorf("%w: it is not compressed as it says: %w", errBody, err)
	}
	return nil
}

func (b *decodedBody) Close() error { return b.body.Close() }
