package modeltest

import (
	"encoding/binary"
	"io"
	"testing"

	"github.com/ingotml/ingot/safetensors"
)

// Golden returns the elements of a tensor of a reference file.
func Golden[E float32 | int32](t *testing.T, name, tensor string) []E {
	t.Helper()
	f, err := safetensors.Open(Reference(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, ok := f.Lookup(tensor)
	var one E
	want := safetensors.DType("F32")
	if _, whole := any(one).(int32); whole {
		want = "I32"
	}
	if !ok || x.DType != want {
		t.Fatalf("%s has no %s of type %s", f.Path(), tensor, want)
	}
	raw, err := io.ReadAll(f.Reader(x))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]E, len(raw)/4)
	if _, err := binary.Decode(raw, binary.LittleEndian, out); err != nil {
		t.Fatal(err)
	}
	return out
}
