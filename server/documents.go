package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server/pdf"
)

// documents caches the texts of PDF files by owner and the files' hashes, since clients send a conversation's files
// with each request. It is safe for concurrent use.
type documents struct {
	mu   sync.Mutex
	list []document // least recently used first
	size int        // bytes of all texts
}

type document struct {
	key  documentKey
	text string
	err  error
}

type documentKey struct {
	owner string
	sum   [sha256.Size]byte
}

// PDFReader returns PDFText for the files of a request, whose number is limited. A file beyond the limit is an error
// about the file.
func (s *Server) PDFReader(ctx context.Context) func(data []byte) (string, error) {
	n := 0
	return func(data []byte) (string, error) {
		if n++; n > limits.PDFs {
			return "", errManyPDFs
		}
		return s.PDFText(ctx, data)
	}
}

var errManyPDFs = fmt.Errorf("at most %d PDFs of a request are read", limits.PDFs)

// PDFText returns the text of a PDF file as a prompt shows it: a line that says what it is, and each page behind a line
// with its number. An error says why the file has no text; it is pdf.ErrNoPDF if the file is none.
func (s *Server) PDFText(ctx context.Context, data []byte) (string, error) {
	key := documentKey{s.cacheOwner(ctx), sha256.Sum256(data)}
	if d, ok := s.documents.get(key); ok {
		return d.text, d.err
	}
	release, err := s.prompts.Take(ctx, limits.PDFMemory)
	if err != nil {
		return "", err
	}
	defer release()
	if d, ok := s.documents.get(key); ok { // another request read it meanwhile
		return d.text, d.err
	}
	doc, err := pdf.Text(ctx, data)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	d := document{key: key, err: err}
	if err == nil {
		d.text = shownPDF(doc)
	}
	s.documents.put(d)
	return d.text, d.err
}

// shownPDF returns a PDF's text for a prompt.
func shownPDF(d *pdf.Document) string {
	var b strings.Builder
	b.WriteString("[PDF")
	if d.Title != "" {
		fmt.Fprintf(&b, " %q", d.Title)
	}
	fmt.Fprintf(&b, " as text, pages: %d]", len(d.Pages))
	for i, page := range d.Pages {
		fmt.Fprintf(&b, "\n[page %d]\n%s", i+1, page)
	}
	if d.Rest != "" {
		b.WriteString("\n" + Omitted("rest of the PDF", d.Rest))
	} else {
		b.WriteString("\n[end of the PDF]")
	}
	return b.String()
}

func (k *documents) get(key documentKey) (document, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.list, func(d document) bool { return d.key == key })
	if i < 0 {
		return document{}, false
	}
	d := k.list[i]
	k.list = append(slices.Delete(k.list, i, i+1), d)
	return d, true
}

func (k *documents) put(d document) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list, k.size = append(k.list, d), k.size+len(d.text)
	for len(k.list) > limits.PDFsKept || k.size > limits.PDFTextsKept {
		k.size -= len(k.list[0].text)
		k.list = slices.Delete(k.list, 0, 1)
	}
}
