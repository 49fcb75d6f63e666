package foreigntest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Member is a member of an archive. Its zero type is that of a file.
type Member struct {
	Name    string
	Content string
	Type    byte
	Link    string
}

// Wrap returns an archive of members.
func Wrap(t testing.TB, wrapping string, members ...Member) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := tar.Header{Name: m.Name, Size: int64(len(m.Content)), Mode: 0o644, Typeflag: m.Type, Linkname: m.Link}
		if m.Type == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.Content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return Compress(t, wrapping, b.String())
}

// Compress returns a text as a wrapping has it.
func Compress(t testing.TB, wrapping, text string) string {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser
	var err error
	switch wrapping {
	case Gzip:
		z = gzip.NewWriter(&b)
	case Zstd:
		z, err = zstd.NewWriter(&b)
	default:
		return text
	}
	if err == nil {
		_, err = io.WriteString(z, text)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Header returns the header of a file of a size, as an archive begins with it.
func Header(t testing.TB, name string, size int64) string {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Name: name, Size: size, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
