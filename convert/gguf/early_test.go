package gguf_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/quantize/ggml"
)

// numbered writes tensors, and then gives those of one type the number of another.
func numbered(t *testing.T, tensors []gguf.Tensor, from, to ggml.Type) []byte {
	t.Helper()
	var b bytes.Buffer
	err := gguf.Write(&b, nil, tensors, func(i int) (io.Reader, error) {
		block, size := tensors[i].Type.Block()
		n := 1
		for _, d := range tensors[i].Shape {
			n *= int(d)
		}
		return bytes.NewReader(make([]byte, n/block*size)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte{byte(from), 0, 0, 0}, []byte{byte(to), 0, 0, 0})
}

// Blocks of 128 and of 64 with the same number are told apart by the distances of the tensors.
func TestDisputedNumber(t *testing.T) {
	list := func(kind ggml.Type) []gguf.Tensor {
		return []gguf.Tensor{
			{Name: "a", Type: kind, Shape: []int64{4, 384}}, {Name: "b", Type: ggml.F32, Shape: []int64{5}},
			{Name: "c", Type: kind, Shape: []int64{128}}, {Name: "d", Type: kind, Shape: []int64{3, 2, 256}},
		}
	}
	for _, kind := range []ggml.Type{ggml.Q2_0, ggml.PQ2_0} {
		for _, number := range []ggml.Type{ggml.Q2_0, kind} {
			h, err := read(numbered(t, list(kind), kind, number))
			if err != nil {
				t.Fatalf("%v as %d: %v", kind, number, err)
			}
			for i, want := range list(kind) {
				got := h.Tensors[i]
				block, size := want.Type.Block()
				n := int64(1)
				for _, d := range want.Shape {
					n *= d
				}
				if got.Type != want.Type || got.Size != n/int64(block)*int64(size) {
					t.Errorf("%v as %d: tensor %s is %v of %d bytes", kind, number, got.Name, got.Type, got.Size)
				}
			}
		}
	}
}

// Blocks that neither type has are refused.
func TestDisputedOther(t *testing.T) {
	wide := []gguf.Tensor{
		{Name: "a", Type: ggml.F32, Shape: []int64{11, 4}}, {Name: "b", Type: ggml.Q1_0, Shape: []int64{8, 256}},
		{Name: "c", Type: ggml.F32, Shape: []int64{3}},
	}
	_, err := read(numbered(t, wide, ggml.Q1_0, ggml.Q2_0))
	want := "tensor b has 288 bytes, but Q2_0, type 42, takes 576"
	if !errors.Is(err, gguf.ErrFormat) || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	// Room to spare is no reason to refuse a file.
	spare := append(numbered(t, wide[1:2], ggml.Q1_0, ggml.Q1_0), make([]byte, 500)...)
	if _, err := read(spare); err != nil {
		t.Error(err)
	}
	_, err = read(bytes.ReplaceAll(spare, []byte{byte(ggml.Q1_0), 0, 0, 0}, []byte{byte(ggml.Q2_0), 0, 0, 0}))
	if err != nil {
		t.Error(err)
	}
	// A file that is cut off is incomplete, whatever its types.
	for _, kind := range []ggml.Type{ggml.Q2_0, ggml.PQ2_0} {
		list := []gguf.Tensor{
			{Name: "a", Type: kind, Shape: []int64{2, 256}}, {Name: "b", Type: kind, Shape: []int64{8, 256}},
		}
		cut := numbered(t, list, kind, ggml.Q2_0)
		_, err := read(cut[:len(cut)-100])
		if !errors.Is(err, gguf.ErrFormat) || !strings.Contains(err.Error(), "tensor b ends at byte") {
			t.Errorf("%v: %v", kind, err)
		}
	}
}
