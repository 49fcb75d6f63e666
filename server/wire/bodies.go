package wire

import (
	"io"
	"net/http"
	"sync"
)

// Bodies limits the memory of all request bodies together, including the values decoded from them. It protects against
// many large bodies at once, and against JSON that decodes into much more than its text. It is safe for concurrent use.
type Bodies struct {
	mu          sync.Mutex
	total, left int64
}

// Estimates of a body's memory, in bytes.
const (
	freeBody    = 64 << 10 // not counted, per body
	perByte     = 3        // per byte of text: the text itself, and strings and pictures decoded from it
	perList     = 512      // per decoded array or object
	perValue    = 64       // per element
	allBodies   = 8        // the limit of all bodies, as a multiple of the largest one
	leastBodies = 64 << 20 // the minimum of that limit
)

// NewBodies returns bodies with a limit that suits a largest body.
func NewBodies(largest int64) *Bodies {
	total := max(allBodies*largest, leastBodies)
	return &Bodies{total: total, left: total}
}

// Bound limits a request's body to most bytes, decompresses it, and counts it until release is called. What a body
// decompresses to has the same limit. The error says that it cannot be decompressed.
func (b *Bodies) Bound(w http.ResponseWriter, r *http.Request, most int64) (release func(), err error) {
	one := &body{ReadCloser: http.MaxBytesReader(w, r.Body, most), of: b}
	err = one.decompress(r, most)
	r.Body = one
	return one.release, err
}

// Reserved returns how many bytes the bodies of requests in progress hold.
func (b *Bodies) Reserved() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total - b.left
}

// Limit returns how many bytes the bodies of requests in progress may hold.
func (b *Bodies) Limit() int64 { return b.total }

func (b *Bodies) take(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case n > b.total:
		return Errorf(http.StatusRequestEntityTooLarge,
			"the request needs %d bytes of memory, which exceeds the limit of %d for all requests", n, b.total)
	case n > b.left:
		return Errorf(http.StatusServiceUnavailable, "not enough memory for the request: other large requests are running")
	}
	b.left -= n
	return nil
}

// body is a request body that reserves memory. A handler that streams the body reserves none.
type body struct {
	io.ReadCloser
	of       *Bodies
	held     int64
	decoders int64 // memory of decompression
}

// reserve raises the body's reservation to n bytes, and what decompression needs.
func (b *body) reserve(n int64) error {
	if n = max(n, 0) + b.decoders - b.held; n <= 0 {
		return nil
	}
	if err := b.of.take(n); err != nil {
		return err
	}
	b.held += n
	return nil
}

// release returns the reservation when the request has ended.
func (b *body) release() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.left += b.held
	b.held = 0
}

// readWhole reads a JSON body into memory and reserves the memory until the request ends.
func readWhole(r *http.Request) ([]byte, error) {
	b, ok := r.Body.(*body)
	if !ok {
		return io.ReadAll(r.Body) // an empty body
	}
	text := make([]byte, 0, 512)
	for {
		if len(text) == cap(text) {
			if err := b.reserve(perByte * (2*int64(cap(text)) - freeBody)); err != nil {
				return nil, err
			}
			text = append(make([]byte, 0, 2*cap(text)), text...)
		}
		n, err := b.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	lists, values := countJSON(text)
	need := perByte*(int64(cap(text))-freeBody) + perList*(lists-freeBody/perList) + perValue*values
	return text, b.reserve(need)
}

// countJSON counts the arrays and objects in a JSON text, and their elements. The result is unspecified for invalid
// JSON.
func countJSON(text []byte) (lists, values int64) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			lists++
		case c == ',':
			values++
		}
	}
	return lists, values
}
