package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// raw returns a file with the given header text and number of data bytes.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, data)...)
}

// entry returns a tensor's entry in a header.
func entry(name, dtype, shape, offsets string) string {
	return `"` + name + `":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}`
}

func readBytes(b []byte) (*Header, error) {
	return ReadHeader(bytes.NewReader(b), int64(len(b)))
}

// encode returns a file with tensors of zeros.
func encode(t *testing.T, tensors ...Tensor) []byte {
	t.Helper()
	var b bytes.Buffer
	err := Write(&b, tensors, nil, func(i int) (io.Reader, error) {
		return bytes.NewReader(make([]byte, tensors[i].Size())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// u8 returns a U8 tensor of n elements.
func u8(name string, n int64) Tensor { return Tensor{Name: name, DType: U8, Shape: []int64{n}} }

func writeFile(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openFile(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// wantError checks that err wraps the sentinel, starts with prefix, and is a single line of limited length.
func wantError(t *testing.T, err, sentinel error, prefix string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", prefix)
	}
	if sentinel != nil && !errors.Is(err, sentinel) {
		t.Errorf("error %q does not wrap %q", err, sentinel)
	}
	if !strings.HasPrefix(err.Error(), prefix) {
		t.Errorf("error\n got %q\nwant %q...", err, prefix)
	}
	if strings.ContainsAny(err.Error(), "\n\r") || len(err.Error()) > 1500 {
		t.Errorf("error is not one short line: %q", err)
	}
}
