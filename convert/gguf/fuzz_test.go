package gguf_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/convert/gguf"
)

// FuzzRead checks that errors are short lines that wrap ErrFormat, that accepted tensors lie inside the file, and that
// an accepted file survives a round trip.
func FuzzRead(f *testing.F) {
	python, err := os.ReadFile("testdata/python.gguf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(python)
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := read(file)
		if err != nil {
			if !errors.Is(err, gguf.ErrFormat) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 3000 {
				t.Fatalf("error %q", err)
			}
			return
		}
		for _, x := range h.Tensors {
			if x.Offset < h.Data || x.Size < 0 || x.Offset+x.Size > int64(len(file)) {
				t.Fatalf("tensor %v is outside of %d bytes", x, len(file))
			}
		}
		again := rewrite(t, file, h)
		if d := cmp.Diff(texts(h), texts(again)); d != "" {
			t.Fatal(d)
		}
	})
}

// rewrite writes a file again and returns its header.
func rewrite(t *testing.T, file []byte, h *gguf.Header) *gguf.Header {
	t.Helper()
	var pairs []gguf.Pair
	for _, key := range h.Metadata.Keys() {
		if key != "general.alignment" {
			v, _ := h.Metadata.Lookup(key)
			pairs = append(pairs, gguf.Pair{Key: key, Value: v})
		}
	}
	var b bytes.Buffer
	err := gguf.Write(&b, pairs, h.Tensors, func(i int) (io.Reader, error) {
		x := h.Tensors[i]
		return io.NewSectionReader(bytes.NewReader(file), x.Offset, x.Size), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	again, err := read(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// texts describes a header, without positions and alignment.
func texts(h *gguf.Header) []string {
	var out []string
	for _, key := range h.Metadata.Keys() {
		if v, _ := h.Metadata.Lookup(key); key != "general.alignment" {
			s := show(v)
			for i := range v.Len {
				if x, ok := v.Float(i); ok {
					s += fmt.Sprintf(" %x", math.Float64bits(x))
				}
			}
			out = append(out, fmt.Sprintf("%s %v %s", key, v, s))
		}
	}
	for _, x := range h.Tensors {
		out = append(out, fmt.Sprintf("%s %v %v %d", x.Name, x.Type, x.Shape, x.Size))
	}
	return out
}
