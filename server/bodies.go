package server

import (
	"io"
	"net/http"
	"sync"
)

// bodies is the memory that all requests' bodies may take together, with what they are decoded into: many large ones at once must not
// take the machine's, and neither must one whose text is short for what it says.
type bodies struct {
	mu          sync.Mutex
	total, left int64
}

// What a body counts with beyond its free part, and what all may, in bytes of the largest one.
const (
	freeBody    = 64 << 10 // bytes
	perByte     = 3        // the text, and texts and pictures made of it
	perList     = 512      // a list or an object, decoded
	perValue    = 64       // what is in it
	allBodies   = 8
	leastBodies = 64 << 20
)

func (b *bodies) set(total int64) { b.total, b.left = total, total }

func (b *bodies) take(n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case n > b.total:
		return failf(http.StatusRequestEntityTooLarge, "the request would take %d bytes of memory, and all together may take %d", n, b.total)
	case n > b.left:
		return failf(http.StatusServiceUnavailable, "other large requests have the memory that there is for them")
	}
	b.left -= n
	return nil
}

// body is that of a request. Whoever only passes it on holds nothing.
type body struct {
	io.ReadCloser
	of   *bodies
	held int64
}

// hold makes the body count with n.
func (b *body) hold(n int64) error {
	if n -= b.held; n <= 0 {
		return nil
	}
	if err := b.of.take(n); err != nil {
		return err
	}
	b.held += n
	return nil
}

// free is called when the request has ended.
func (b *body) free() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.left += b.held
	b.held = 0
}

// readWhole reads a body of JSON into memory, where it stays until the request has ended.
func readWhole(r *http.Request) ([]byte, error) {
	b, ok := r.Body.(*body)
	if !ok {
		return io.ReadAll(r.Body) // an empty one
	}
	text := make([]byte, 0, 512)
	for {
		if len(text) == cap(text) {
			if err := b.hold(perByte * (2*int64(cap(text)) - freeBody)); err != nil {
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
	return text, b.hold(perByte*(int64(cap(text))-freeBody) + perList*(lists-freeBody/perList) + perValue*values)
}

// countJSON counts the lists and objects of a text of JSON, and what is in them. Of what is no JSON it gives anything.
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
