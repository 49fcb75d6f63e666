package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/quantize/ggml"
)

// read reads the header of a file.
func read(file []byte) (*gguf.Header, error) {
	return gguf.Read(bytes.NewReader(file), int64(len(file)))
}

// listMetadata returns the metadata, a line each.
func listMetadata(h *gguf.Header) (list []string) {
	for _, key := range h.Metadata.Keys() {
		v, _ := h.Metadata.Lookup(key)
		list = append(list, fmt.Sprintf("%s: %v %s", key, v, show(v)))
	}
	return list
}

// A file of the gguf package reads with every kind of metadata.
func TestReadPython(t *testing.T) {
	file, err := os.ReadFile("testdata/python.gguf")
	if err != nil {
		t.Fatal(err)
	}
	h, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	got := listMetadata(h)
	want := []string{
		"general.architecture: string [llama]",
		"test.uint8: uint8 [200]", "test.int8: int8 [-100]",
		"test.uint16: uint16 [60000]", "test.int16: int16 [-30000]",
		"test.uint32: uint32 [4000000000]", "test.int32: int32 [-2000000000]", "test.float32: float32 [0.5]",
		"test.uint64: uint64 [1099511627776]", "test.int64: int64 [-1099511627776]", "test.float64: float64 [0.1]",
		"test.bool: bool [true]", "test.string: string [grüße]", "test.strings: array of 3 string [a  c]",
		"test.numbers: array of 3 int32 [1 -2 3]", "test.arrays: array of 2 array [[1 2] [3]]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = nil
	for _, x := range h.Tensors {
		got = append(got, fmt.Sprintf("%s %v %v %d", x.Name, x.Type, x.Shape, x.Size))
	}
	want = []string{"f32 F32 [2 3] 24", "f16 F16 [1 2 2] 8", "q8 Q8_0 [2 32] 68", "one I32 [1] 4"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	x, ok := h.Lookup("one")
	if !ok || binary.LittleEndian.Uint32(file[x.Offset:]) != 7 {
		t.Errorf("the data of %v is not 7", x)
	}
}

// show lists a value's elements.
func show(v gguf.Value) string {
	switch v.Kind {
	case gguf.String:
		return fmt.Sprint(v.Strings())
	case gguf.Array:
		var all []string
		for _, a := range v.Values() {
			all = append(all, show(a))
		}
		return fmt.Sprint(all)
	case gguf.Bool:
		b, _ := v.Bool(0)
		return fmt.Sprint([]bool{b})
	}
	var all []float64
	var whole []int64
	for i := range v.Len {
		if n, ok := v.Int(i); ok {
			whole = append(whole, n)
		}
		x, _ := v.Float(i)
		all = append(all, x)
	}
	if len(whole) == v.Len {
		return fmt.Sprint(whole)
	}
	return fmt.Sprint(all)
}

// sample is a valid file with two tensors.
func sample(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	err := gguf.Write(&b, []gguf.Pair{
		{"general.architecture", gguf.Text("llama")},
		{"a.number", gguf.Number(7)},
		{"a.real", gguf.Real(0.25)},
		{"a.flag", gguf.Flag(true)},
		{"a.texts", gguf.Texts([]string{"x", "yz"})},
		{"a.numbers", gguf.Numbers([]int32{1, -2})},
		{"a.floats", gguf.Floats([]float32{0.5, -1})},
	}, []gguf.Tensor{
		{Name: "codes", Type: ggml.Q8_0, Shape: []int64{3, 64}},
		{Name: "plain", Type: ggml.F16, Shape: []int64{5}},
	}, func(i int) (io.Reader, error) {
		return bytes.NewReader(bytes.Repeat([]byte{byte(i + 1)}, []int{204, 10}[i])), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWrite(t *testing.T) {
	file := sample(t)
	h, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	got := listMetadata(h)
	want := []string{
		"general.architecture: string [llama]", "a.number: uint32 [7]", "a.real: float32 [0.25]", "a.flag: bool [true]",
		"a.texts: array of 2 string [x yz]", "a.numbers: array of 2 int32 [1 -2]", "a.floats: array of 2 float32 [0.5 -1]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for i, x := range h.Tensors {
		data := file[x.Offset:][:x.Size]
		if x.Offset%32 != 0 || !bytes.Equal(data, bytes.Repeat([]byte{byte(i + 1)}, int(x.Size))) {
			t.Errorf("tensor %v has other data", x)
		}
	}
	if n := len(file) % 32; n != 0 {
		t.Errorf("the file ends %d bytes after a multiple of 32", n)
	}
}

func TestWriteErrors(t *testing.T) {
	one := []gguf.Tensor{{Name: "w", Type: ggml.Q8_0, Shape: []int64{1, 32}}}
	for _, test := range []struct {
		tensors []gguf.Tensor
		data    int
		want    string
	}{
		{one, 33, "invalid GGUF file: tensor w has 33 bytes of data, want 34"},
		{one, 35, "invalid GGUF file: tensor w has 35 bytes of data, want 34"},
		{[]gguf.Tensor{{Name: "w", Type: ggml.Q8_0, Shape: []int64{32, 1}}}, 0,
			"invalid GGUF file: tensor w of type Q8_0 cannot have shape [32 1]"},
	} {
		err := gguf.Write(io.Discard, nil, test.tensors, func(int) (io.Reader, error) {
			return bytes.NewReader(make([]byte, test.data)), nil
		})
		if !errors.Is(err, gguf.ErrFormat) || err.Error() != test.want {
			t.Errorf("error %v, want %s", err, test.want)
		}
	}
}

// raw builds files that Write does not.
type raw struct{ bytes.Buffer }

func (r *raw) u32(n uint32) *raw { r.Write(binary.LittleEndian.AppendUint32(nil, n)); return r }
func (r *raw) u64(n uint64) *raw { r.Write(binary.LittleEndian.AppendUint64(nil, n)); return r }
func (r *raw) str(s string) *raw { r.u64(uint64(len(s))).WriteString(s); return r }

// begin starts a file of version 3.
func begin(tensors, keys uint64) *raw {
	r := &raw{}
	r.WriteString("GGUF")
	return r.u32(3).u64(tensors).u64(keys)
}

// tensor appends a description of a tensor; dims are in the order of the file.
func (r *raw) tensor(name string, kind ggml.Type, offset uint64, dims ...uint64) *raw {
	r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(uint32(kind)).u64(offset)
}

// fill completes a file to n bytes.
func (r *raw) fill(n int) []byte { return append(r.Bytes(), make([]byte, max(0, n-r.Len()))...) }

func TestHostile(t *testing.T) {
	version := func(v uint32) []byte {
		r := &raw{}
		r.WriteString("GGUF")
		return r.u32(v).fill(64)
	}
	for _, test := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "it is empty; download it again"},
		{"other file", []byte("PK\x03\x04 and more"), `it is a zip archive, want a GGUF file`},
		{"version 1", version(1), "version 1 is not supported; convert it again with a current llama.cpp"},
		{"version 4", version(4), "version 4 is not supported; this version of ingot reads 2 and 3"},
		{"big-endian", version(3 << 24), "it is big-endian; convert it on a little-endian machine"},
		{"cut", begin(1, 0).Bytes(), "it ends inside its header: 0 bytes follow, want 8"},
		{"long string", begin(0, 1).u64(1 << 62).fill(99),
			"it ends inside its header: 67 bytes follow, want 4611686018427387904"},
		{"key twice", begin(0, 2).str("k").u32(0).bytes(1).str("k").u32(0).bytes(1).Bytes(),
			`metadata key k exists twice (metadata "k")`},
		{"empty key", begin(0, 1).str("").u32(0).bytes(1).Bytes(), `metadata key "" is not a name`},
		{"kind", begin(0, 1).str("k").u32(13).Bytes(), `kind 13 does not exist (metadata "k")`},
		{"long array", begin(0, 1).str("k").u32(9).u32(10).u64(100).fill(99),
			`it ends inside its header: 50 bytes follow, want 100 (metadata "k")`},
		{"array of numbers", begin(0, 1).str("k").u32(9).u32(10).u64(20).fill(99),
			`it ends inside its header: 50 bytes follow, want 160 (metadata "k")`},
		{"alignment", begin(0, 1).str("general.alignment").u32(4).u32(24).fill(99),
			"metadata general.alignment is 24, want a power of two up to 1048576"},
		{"alignment's kind", begin(0, 1).str("general.alignment").u32(8).str("32").fill(99),
			"metadata general.alignment is of type string, want an integer"},
		{"tensor name", begin(1, 0).tensor("", ggml.F32, 0, 1).fill(200),
			`tensor name "" is empty, not a line of UTF-8, or longer than 1024 bytes`},
		{"dimensions", begin(1, 0).tensor("w", ggml.F32, 0, 1, 1, 1, 1, 1).fill(200),
			"tensor w has 5 dimensions, more than 4"},
		{"elements", begin(1, 0).tensor("w", ggml.F32, 0, 1<<31, 1<<31).fill(200), "tensor w has too many elements"},
		{"type", begin(1, 0).tensor("w", 9, 0, 32).fill(200), "tensor w: unsupported ggml type: Q8_1; " +
			"use a file of another type, such as Q4_K_M or Q8_0, or the model's unquantized checkpoint"},
		{"other type", begin(1, 0).tensor("w", 43, 0, 256).fill(200), "tensor w: unsupported ggml type: type 43; " +
			"use a file of another type, such as Q4_K_M or Q8_0, or the model's unquantized checkpoint"},
		{"type of a fork", begin(1, 0).tensor("w", 143, 0, 128).fill(200), "tensor w: unsupported ggml type: PTQ1_0; " +
			"use a file of another type, such as Q4_K_M or Q8_0, or the model's unquantized checkpoint"},
		{"blocks", begin(1, 0).tensor("w", ggml.Q4_K, 0, 255).fill(200),
			"tensor w has rows of 255 elements, not whole blocks of 256 (Q4_K)"},
		{"end", begin(1, 0).tensor("w", ggml.F32, 0, 1000).fill(200),
			"tensor w ends at byte 4064, but the file has 200; download it again"},
		{"far", begin(1, 0).tensor("w", ggml.F32, 1<<63-32, 1).fill(200),
			"tensor w ends at byte 9223372036854775844, but the file has 200; download it again"},
		{"negative", begin(1, 0).tensor("w", ggml.F32, 1<<63, 1).fill(200),
			"tensor w lies at 9223372036854775808, outside of the file"},
		{"unaligned", begin(1, 0).tensor("w", ggml.F32, 4, 1).fill(200),
			"tensor w lies at 4, not at a multiple of 32"},
		{"overlap", begin(2, 0).tensor("a", ggml.F32, 0, 16).tensor("b", ggml.F32, 32, 1).fill(400),
			"tensors a and b overlap"},
		{"tensor twice", begin(2, 0).tensor("a", ggml.F32, 0, 1).tensor("a", ggml.F32, 32, 1).fill(400),
			"tensor a exists twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := read(test.file)
			if !errors.Is(err, gguf.ErrFormat) || err.Error() != "invalid GGUF file: "+test.want {
				t.Errorf("error %v\nwant  invalid GGUF file: %s", err, test.want)
			}
		})
	}
}

// bytes appends n zeros.
func (r *raw) bytes(n int) *raw { r.Write(make([]byte, n)); return r }

// zeros is a file of endless zeros after a beginning.
type zeros struct{ begin []byte }

func (z zeros) ReadAt(b []byte, at int64) (int, error) {
	clear(b)
	if at < int64(len(z.begin)) {
		copy(b, z.begin[at:])
	}
	return len(b), nil
}

func TestLimits(t *testing.T) {
	nested := begin(0, 1).str("k").u32(9)
	for range limits.GGUFNesting {
		nested.u32(9).u64(1)
	}
	many := begin(0, 1).str("k").u32(9).u32(9).u64(limits.GGUFKeys + 1)
	for range limits.GGUFKeys + 1 {
		many.u32(0).u64(0)
	}
	for _, test := range []struct{ name, file, want string }{
		{"header", begin(0, 1).str("k").u32(9).u32(0).u64(limits.GGUFHeader).String(),
			`its header has more than 64 MiB (metadata "k")`},
		{"string", begin(0, 1).str("k").u32(8).u64(limits.GGUFHeader).String(),
			`its header has more than 64 MiB (metadata "k")`},
		{"keys", begin(0, limits.GGUFKeys+1).String(), "it has 65537 metadata keys, more than 65536"},
		{"tensors", begin(limits.GGUFTensors+1, 0).String(), "it has 131073 tensors, more than 131072"},
		{"nesting", nested.String(), `arrays are nested deeper than 4 levels (metadata "k")`},
		{"arrays", many.String(), `it has more than 65536 arrays within arrays (metadata "k")`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := gguf.Read(zeros{[]byte(test.file)}, 1<<40)
			if !errors.Is(err, gguf.ErrFormat) || err.Error() != "invalid GGUF file: "+test.want {
				t.Errorf("error %v\nwant  invalid GGUF file: %s", err, test.want)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	h, err := read(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	m := h.Metadata
	if s, err := m.Text("general.architecture"); s != "llama" || err != nil {
		t.Error(s, err)
	}
	if n, err := m.Int("a.number"); n != 7 || err != nil {
		t.Error(n, err)
	}
	if x, err := m.Float("a.real"); x != 0.25 || err != nil {
		t.Error(x, err)
	}
	if b, err := m.Bool("a.flag", false); !b || err != nil {
		t.Error(b, err)
	}
	if b, err := m.Bool("none", true); !b || err != nil {
		t.Error(b, err)
	}
	if s, err := m.Texts("a.texts"); !cmp.Equal(s, []string{"x", "yz"}) || err != nil {
		t.Error(s, err)
	}
	for _, f := range []func() error{
		func() error { _, err := m.Text("a.number"); return err },
		func() error { _, err := m.Text("a.texts"); return err },
		func() error { _, err := m.Int("a.real"); return err },
		func() error { _, err := m.Int("a.numbers"); return err },
		func() error { _, err := m.Int("none"); return err },
		func() error { _, err := m.Float("none"); return err },
		func() error { _, err := m.Float("a.flag"); return err },
		func() error { _, err := m.Bool("a.number", false); return err },
		func() error { _, err := m.Texts("a.floats"); return err },
	} {
		if err := f(); !errors.Is(err, gguf.ErrFormat) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want a line that wraps ErrFormat", err)
		}
	}
}
