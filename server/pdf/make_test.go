package pdf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"
)

// made returns a file of objects, which are numbered from 1. The first is the catalog.
func made(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<</Root 1 0 R /Size %d>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, at)
	return b.Bytes()
}

// data returns a stream.
func data(dict, content string) string {
	return fmt.Sprintf("<<%s /Length %d>>\nstream\n%s\nendstream", dict, len(content), content)
}

// zipped returns a compressed stream.
func zipped(t testing.TB, dict, content string) string {
	t.Helper()
	return data(dict+" /Filter /FlateDecode", deflated(t, content))
}

func deflated(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Fonts without an object of their own.
const (
	sansFont  = "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>"
	monoFont  = "<</Type /Font /Subtype /Type1 /BaseFont /Courier>>"
	catalog   = "<</Type /Catalog /Pages 2 0 R>>"
	pageTree  = "<</Type /Pages /Count 1 /Kids [3 0 R]>>"
	fontsPage = "<</Type /Page /Parent 2 0 R /Contents 4 0 R /Resources <</Font <</F %s>> %s>> >>"
)

// page returns the objects of a file of one page with a font, F, and further resources, and more objects from 5 on.
func page(font, resources, content string, more ...string) []string {
	return append([]string{catalog, pageTree, fmt.Sprintf(fontsPage, font, resources), content}, more...)
}

// painted returns a file of one page whose content is text in a sans-serif font.
func painted(content string) []byte {
	return made(page(sansFont, "", data("", "BT /F 10 Tf 50 700 Td "+content+" ET"))...)
}

// read returns a file's pages, separated by form feeds.
func read(t testing.TB, b []byte) string {
	t.Helper()
	d, err := Text(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(d.Pages, "\f")
}
