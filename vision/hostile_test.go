package vision

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
)

// pngOf returns the beginning of a PNG with a given size in its header.
func pngOf(width, height uint32) []byte {
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")
	head := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)...)
	head = append(head, 8, 2, 0, 0, 0)
	_ = binary.Write(&b, binary.BigEndian, uint32(13))
	b.Write(head)
	_ = binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(head))
	return b.Bytes()
}

func TestReadRefuses(t *testing.T) {
	jpeg := readFile(t, "files/ycc444.jpg")
	scans := append(bytes.Clone(jpeg), bytes.Repeat([]byte("\xff\xda\x00\x02"), limits.PictureScans)...)
	for _, test := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "the picture is empty"},
		{"a text", []byte("hello"), "neither PNG, JPEG, GIF, WebP nor BMP"},
		{"cut off head", []byte("\x89PNG\r\n\x1a\n"), "PNG"},
		{"cut off", jpeg[:len(jpeg)/2], "JPEG"},
		{"no pixels", pngOf(0, 5), "PNG"},
		{"huge", pngOf(1<<20, 1<<20), "more than 67108864"},
		{"long", pngOf(10, 3000), "more than 200 times"},
		{"no data", pngOf(100, 100), "PNG"},
		{"scans", scans, "scans, more than 100"},
		{"empty WebP", []byte("RIFF\x04\x00\x00\x00WEBP"), "WebP"},
	} {
		if _, err := New(16, 2, 2).Read(test.file); !errors.Is(err, ErrPicture) ||
			!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// An invalid orientation tag has no effect.
func TestBrokenOrientation(t *testing.T) {
	for _, b := range []string{"", "II*\x00", "II*\x00\xff\xff\xff\xff", "MM\x00*\x00\x00\x00\x08",
		"MM\x00*\x00\x00\x00\x08\xff\xff", "XX*\x00\x08\x00\x00\x00"} {
		if got := tiffOrientation([]byte(b)); got != 1 {
			t.Errorf("%q: %d", b, got)
		}
	}
	value := "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x09\x00\x00\x00"
	if got := tiffOrientation([]byte(value)); got != 1 {
		t.Errorf("orientation 9 is read as %d", got)
	}
}

func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/files/*")
	if err != nil || len(paths) == 0 {
		f.Fatal(paths, err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	p := New(16, 2, 2)
	p.MinPixels, p.MaxPixels = 1024, 4096
	f.Fuzz(func(t *testing.T, file []byte) {
		if kind, err := probe(file); err == nil && kind.width*kind.height > 1<<20 {
			return // large ones take seconds and find nothing more
		}
		got, err := p.Read(file)
		if err != nil {
			if !errors.Is(err, ErrPicture) {
				t.Errorf("an unexpected kind of error: %v", err)
			}
			return
		}
		if got.Rows*got.Cols*got.Width() != len(got.Pixels) || got.Width() != 3*2*16*16 ||
			got.Tokens()*4 != got.Rows*got.Cols {
			t.Errorf("%d x %d patches of %d values, %d tokens", got.Rows, got.Cols, got.Width(), got.Tokens())
		}
	})
}
