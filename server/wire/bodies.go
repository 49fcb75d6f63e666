package wire

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server/budget"
)

// Estimates of a request's memory, in bytes.
const (
	freeText = 64 << 10 // not counted, of a body and of an answer
	perByte  = 3        // per byte of text: the text itself, and strings and pictures decoded from it
	perList  = 512      // per decoded array or object
	perValue = 64       // per element
)

// Bound limits a request's body to most bytes, decompresses it, and counts it in the request's account. What a body
// decompresses to has the same limit. The error says that it cannot be decompressed.
func Bound(w http.ResponseWriter, r *http.Request, most int64) error {
	a := budget.From(r.Context())
	one := &body{ctx: r.Context(), account: a}
	one.ReadCloser = &incoming{http.MaxBytesReader(w, r.Body, most), a, http.NewResponseController(w)}
	err := one.decompress(r, most)
	r.Body = one
	return err
}

// incoming is a body that comes from a client.
type incoming struct {
	io.ReadCloser
	account *budget.Account
	control *http.ResponseController
}

func (b *incoming) Read(p []byte) (int, error) {
	cut := func() { _ = b.control.SetReadDeadline(time.Now()) } // fails only for a test's ResponseWriter
	return b.account.Wait(func() {}, cut, func() (int, error) { return b.ReadCloser.Read(p) })
}

// Take counts n bytes of memory for a request until it has ended. Its error is one of memory: what one request needs
// that no request may have, or what others hold.
func Take(ctx context.Context, n int64) error {
	a := budget.From(ctx)
	if a != nil && n > a.Most() {
		return Errorf(http.StatusRequestEntityTooLarge,
			"the request needs %d bytes of memory, which exceeds the limit of %d for one request", n, a.Most())
	}
	return a.Take(ctx, n)
}

// TakeJSON counts the memory for decoding a JSON text that the request refers to.
func TakeJSON(ctx context.Context, text []byte) error { return Take(ctx, sizeDecoded(text)) }

// body is a request body that reserves memory. A handler that streams the body reserves none.
type body struct {
	io.ReadCloser
	ctx      context.Context
	account  *budget.Account
	held     int64
	decoders int64 // memory of decompression
}

// reserve raises the body's reservation to n bytes, and what decompression needs.
func (b *body) reserve(n int64) error {
	n = max(n, 0) + b.decoders
	if n <= b.held {
		return nil
	}
	if b.account != nil && n > b.account.Most() {
		return Take(b.ctx, n) // which refuses it
	}
	if err := b.account.Take(b.ctx, n-b.held); err != nil {
		return err
	}
	b.held = n
	return nil
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
			if err := b.reserve(perByte * (2*int64(cap(text)) - freeText)); err != nil {
				text = nil
				_, _ = io.Copy(io.Discard, b) // a client that is still sending would not get to the answer
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
	if lists > limits.RequestLists {
		return nil, BadRequest("the request has %d objects and arrays, at most %d are allowed", lists, limits.RequestLists)
	}
	need := perByte*(int64(cap(text))-freeText) + perList*(lists-freeText/perList) + perValue*values
	return text, b.reserve(need)
}

// sizeDecoded returns the memory that a JSON text and what it decodes to need.
func sizeDecoded(text []byte) int64 {
	lists, values := countJSON(text)
	return perByte*int64(len(text)) + perList*lists + perValue*values
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
