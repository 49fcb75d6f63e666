// Package pdf reads the text of PDF files: their text layer, page by page, in the order in which it is painted.
//
// Contract:
//   - It reads ISO 32000-2 as far as text needs it: all cross-reference forms, object streams, encryption without a
//     password, form fields, fonts with a ToUnicode map or a known encoding. It draws nothing and runs nothing.
//   - A file is hostile. The bounds are those of internal/limits/pdf.go: time is bounded by work in bytes, memory by
//     what is kept, recursion by nesting. A damaged part is skipped, and a damaged cross-reference table is rebuilt.
//   - If a bound is reached, the result is the text up to there and says so.
//   - The package is safe for concurrent use, and starts no goroutines.
package pdf

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
)

// Errors of Text.
var (
	ErrNoPDF    = errors.New("not a readable PDF file")
	ErrPassword = errors.New("the PDF needs a password")
	ErrNoText   = errors.New("the PDF has no text, only pictures or drawings")
	ErrUnmapped = errors.New("the PDF's fonts do not say which characters they show")
)

// Document is the text of a PDF file.
type Document struct {
	Title string
	Pages []string // without those beyond a limit
	Rest  string   // why there is no more text than this, or ""
}

// Text returns the text of a PDF file. A file whose pages have none is an error.
func Text(ctx context.Context, data []byte) (*Document, error) {
	if len(data) > limits.PDFBytes {
		return nil, fmt.Errorf("the PDF has %d bytes, which exceeds the limit of %d", len(data), limits.PDFBytes)
	}
	w := &work{ctx: ctx, left: limits.PDFWork, free: limits.PDFMemory}
	f, err := open(data, w)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	d := &Document{Title: f.title()}
	shown, unmapped := 0, 0
	for page := range f.pages() {
		if len(d.Pages) == limits.PDFPages {
			w.stop(fmt.Errorf("it has more than %d pages", limits.PDFPages))
			break
		}
		p := &painter{file: f}
		p.page(page)
		d.Pages = append(d.Pages, p.layout.text())
		shown, unmapped = shown+p.shown, unmapped+p.unmapped
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	has := strings.TrimSpace(strings.Join(d.Pages, "")) != ""
	switch {
	case w.err != nil && !has:
		return nil, fmt.Errorf("the PDF cannot be read within the limits: %w", w.err)
	case len(d.Pages) == 0:
		return nil, ErrNoPDF
	case shown > 0 && unmapped*2 > shown:
		return nil, ErrUnmapped
	case !has:
		return nil, ErrNoText
	case w.err != nil:
		d.Rest = w.err.Error()
	}
	return d, nil
}

// work bounds what a file may cause. After the first error everything stops soon.
type work struct {
	ctx  context.Context
	left int64 // bytes of work
	free int64 // bytes of memory
	text int   // bytes of text so far
	next int64 // value of left at which the context is checked
	err  error
}

func (w *work) stop(err error) {
	if w.err == nil {
		w.err = err
	}
}

// spend takes n bytes of work, and reports whether they were there.
func (w *work) spend(n int) bool {
	if w.err != nil {
		return false
	}
	if w.left -= int64(n); w.left < 0 {
		w.stop(fmt.Errorf("reading it takes more than %d bytes of work", limits.PDFWork))
		return false
	}
	if w.next == 0 || w.left < w.next {
		const often = 1 << 15
		w.next = max(w.left-often, 1)
		if err := w.ctx.Err(); err != nil {
			w.stop(err)
			return false
		}
	}
	return true
}

// keep takes n bytes of memory until release.
func (w *work) keep(n int) bool {
	if w.err != nil {
		return false
	}
	if int64(n) > w.free {
		w.stop(fmt.Errorf("reading it takes more than %d bytes of memory", limits.PDFMemory))
		return false
	}
	w.free -= int64(n)
	return true
}

func (w *work) release(n int) { w.free += int64(n) }
