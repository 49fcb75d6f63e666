package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/pdf"
)

// A PDF's text has its pages' numbers, and is kept for the next request.
func TestPDFText(t *testing.T) {
	s := &Server{prompts: promptMemory(times{})}
	data, err := os.ReadFile("pdf/testdata/report.pdf")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		text, err := s.PDFText(t.Context(), data)
		const head = "[PDF \"Häfen & Schiffe – 2026\" as text, pages: 2]\n[page 1]\nHäfen"
		if err != nil || !strings.HasPrefix(text, head) ||
			!strings.Contains(text, "\n[page 2]\nShip\tTons\tBerth\n") || !strings.HasSuffix(text, "\n[end of the PDF]") {
			t.Errorf("%s, %v", text, err)
		}
		if _, err := s.PDFText(t.Context(), []byte("none")); !errors.Is(err, pdf.ErrNoPDF) {
			t.Errorf("no PDF: %v", err)
		}
	}
	if n := len(s.documents.list); n != 2 {
		t.Errorf("%d files are kept, want 2", n)
	}
	cut := shownPDF(&pdf.Document{Pages: []string{"a"}, Rest: "it has more than 9 pages"})
	if cut != "[PDF as text, pages: 1]\n[page 1]\na\n[rest of the PDF omitted: it has more than 9 pages]" {
		t.Errorf("cut: %s", cut)
	}
}

// A request reads a bounded number of files, and goes on without the others.
func TestManyPDFs(t *testing.T) {
	s := &Server{prompts: promptMemory(times{})}
	read := s.PDFReader(t.Context())
	for i := range limits.PDFs + 1 {
		want := pdf.ErrNoPDF
		if i == limits.PDFs {
			want = errManyPDFs
		}
		if _, err := read([]byte("none")); !errors.Is(err, want) {
			t.Errorf("file %d: %v, want %v", i+1, err, want)
		}
	}
}

// The texts that are kept have limits. The least recently used one goes first.
func TestDocumentsKept(t *testing.T) {
	key := func(i int) documentKey { return documentKey{sum: sha256.Sum256([]byte{byte(i), byte(i >> 8)})} }
	var k documents
	for i := range limits.PDFsKept {
		k.put(document{key: key(i), text: "x"})
	}
	k.get(key(0))
	k.put(document{key: key(limits.PDFsKept)})
	_, first := k.get(key(0))
	_, second := k.get(key(1))
	if !first || second || len(k.list) != limits.PDFsKept {
		t.Errorf("%d files, first %v, second %v", len(k.list), first, second)
	}
	large := strings.Repeat("x", limits.PDFTextsKept/4)
	for i := range 6 {
		k.put(document{key: key(1000 + i), text: large})
	}
	if k.size > limits.PDFTextsKept || len(k.list) != 4 {
		t.Errorf("%d bytes of %d files", k.size, len(k.list))
	}
}

// The text of a file that one key has sent is read again for another key, whose times would tell that it was there.
func TestDocumentsOfOwners(t *testing.T) {
	data := []byte("%PDF-1.4 none")
	for share, want := range map[bool]int{false: 3, true: 1} {
		s := &Server{prompts: promptMemory(times{}), opts: Options{ShareCache: share}}
		k := keys.One("k")
		named := func(owner string) context.Context { return keys.With(t.Context(), k.Owned(owner)) }
		for _, ctx := range []context.Context{named("a"), named("b"), t.Context(), named("a"), named("b")} {
			_, _ = s.PDFText(ctx, data)
		}
		if n := len(s.documents.list); n != want {
			t.Errorf("shared %v: %d files are kept, want %d", share, n, want)
		}
	}
}
