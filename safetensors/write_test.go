package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestEncodeHeader(t *testing.T) {
	for _, tt := range []struct {
		name     string
		tensors  []Tensor
		metadata map[string]string
		want     string // the JSON text
		start    int    // offset of the data region
	}{
		{"nothing", nil, nil, `{}`, 64},
		{"empty metadata", nil, map[string]string{}, `{}`, 64},
		{"sorted metadata", nil, map[string]string{"b": "2", "a": "1", "B": ""}, `{"__metadata__":{"B":"","a":"1","b":"2"}}`,
			64},
		{"order given, Begin and End ignored", []Tensor{{"b", F32, []int64{2}, 9, 9}, {"a", U8, nil, 9, 9}},
			map[string]string{"k": "v"},
			`{"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[],` +
				`"data_offsets":[8,9]}}`, 192},
		{"no padding needed", []Tensor{u8("padd", 4)}, nil, `{"padd":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 64},
		{"one byte more", []Tensor{u8("padde", 4)}, nil, `{"padde":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 128},
		{"below 1 MiB", []Tensor{u8("t", 1<<20-1)}, nil, `{"t":{"dtype":"U8","shape":[1048575],"data_offsets":[0,1048575]}}`,
			128},
		{"1 MiB", []Tensor{u8("s", 1), u8("t", 1<<20)}, nil,
			`{"s":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1048576],"data_offsets":[1,` +
				`1048577]}}`, 16384},
		{"escapes", []Tensor{u8("\"\\/\b\f\n\r\t\x00\x1f\x7f<>&\u2028é", 1)}, nil,
			`{"\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f<>&\u2028é" + `":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 128},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header, out, err := EncodeHeader(tt.tensors, tt.metadata)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimRight(string(header[8:]), " "); got != tt.want {
				t.Errorf("header\n got %s\nwant %s", got, tt.want)
			}
			if len(header) != tt.start || binary.LittleEndian.Uint64(header) != uint64(tt.start-8) {
				t.Errorf("data starts at %d, length says %d, want %d", len(header), 8+binary.LittleEndian.Uint64(header), tt.start)
			}
			size := int64(len(header))
			if len(out) > 0 {
				size += out[len(out)-1].End
			}
			h, err := ReadHeader(bytes.NewReader(header), size)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(h.Tensors, out, cmp.Transformer("",
				func(s []Tensor) []Tensor { return append([]Tensor{}, s...) })); diff != "" {
				t.Errorf("tensors read (-) and returned (+):\n%s", diff)
			}
		})
	}
}

func TestEncodeHeaderErrors(t *testing.T) {
	for _, tt := range []struct {
		name     string
		tensors  []Tensor
		metadata map[string]string
		sentinel error
		want     string
	}{
		{"empty name", []Tensor{u8("", 1)}, nil, ErrName, `tensor "": invalid tensor name: it is empty`},
		{"reserved name", []Tensor{u8("__metadata__", 1)}, nil, ErrName,
			`tensor "__metadata__": invalid tensor name: it is reserved`},
		{"name not UTF-8", []Tensor{u8("a\xff", 1)}, nil, ErrName, `tensor "a\xff": invalid tensor name: it is not UTF-8`},
		{"duplicate", []Tensor{u8("a", 1), u8("a", 1)}, nil, ErrDuplicate,
			`tensor "a": duplicate: two tensors have this name`},
		{"dtype", []Tensor{{Name: "a", DType: "F128"}}, nil, ErrDType, `tensor "a": unknown dtype "F128"`},
		{"negative dimension", []Tensor{u8("a", -1)}, nil, ErrShape, `tensor "a": invalid shape [-1]: negative dimension`},
		{"overflow", []Tensor{{Name: "a", DType: U8, Shape: []int64{math.MaxInt64, 3}}}, nil, ErrShape,
			`tensor "a": invalid shape [9223372036854775807 3]: the number`},
		{"overflow of the sum", []Tensor{u8("a", 1<<61-1), u8("b", 1<<61-1), u8("c", 1<<61-1), u8("d", 1<<61-1)}, nil,
			ErrShape, `tensor "d": invalid shape: the size of the file overflows`},
		{"half a byte", []Tensor{{Name: "a", DType: F4}}, nil, ErrShape,
			`tensor "a": invalid shape []: 1 elements of 4 bits`},
		{"too many dimensions", []Tensor{{Name: "a", DType: U8, Shape: make([]int64, 65)}}, nil, ErrShape,
			`tensor "a": invalid shape: 65 dimensions, at most 64`},
		{"metadata key not UTF-8", nil, map[string]string{"\xff": ""}, ErrHeader,
			`__metadata__: invalid header: key "\xff" or its value is not UTF-8`},
		{"metadata value not UTF-8", nil, map[string]string{"k": "\xff"}, ErrHeader,
			`__metadata__: invalid header: key "k" or`},
		{"too large", nil, map[string]string{"k": strings.Repeat("x", MaxHeaderSize)}, ErrHeaderTooLarge,
			`header too large: 100000056 bytes, the limit is 100000000`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header, out, err := EncodeHeader(tt.tensors, tt.metadata)
			wantError(t, err, tt.sentinel, tt.want)
			if header != nil || out != nil {
				t.Error("a value was returned with the error")
			}
		})
	}
}

func TestWriteReaders(t *testing.T) {
	broken := errors.New("broken disk")
	zeros := func(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
	for _, tt := range []struct {
		name     string
		second   io.Reader
		err      error
		sentinel error
		want     string // empty: no error
	}{
		{"exact", zeros(10), nil, nil, ""},
		{"in small pieces", iotest.OneByteReader(zeros(10)), nil, nil, ""},
		{"end together with the data", iotest.DataErrReader(zeros(10)), nil, nil, ""},
		{"short", zeros(9), nil, ErrDataSize, `tensor "b": wrong amount of data: the reader ended after 9 bytes of 10`},
		{"empty", zeros(0), nil, ErrDataSize, `tensor "b": wrong amount of data: the reader ended after 0 bytes of 10`},
		{"long", zeros(11), nil, ErrDataSize, `tensor "b": wrong amount of data: the reader has more than 10 bytes`},
		{"fails", io.MultiReader(zeros(5), iotest.ErrReader(broken)), nil, broken, `tensor "b": broken disk`},
		{"fails after the data", io.MultiReader(zeros(10), iotest.ErrReader(broken)), nil, broken, `tensor "b": broken disk`},
		{"cannot be had", nil, broken, broken, `tensor "b": broken disk`},
		{"nil", nil, nil, ErrDataSize, `tensor "b": wrong amount of data: no reader`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			err := Write(&b, []Tensor{u8("a", 3), u8("b", 10)}, nil, func(i int) (io.Reader, error) {
				if i == 0 {
					return zeros(3), nil
				}
				return tt.second, tt.err
			})
			if tt.want != "" {
				wantError(t, err, tt.sentinel, tt.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if h, err := readBytes(b.Bytes()); err != nil || len(h.Tensors) != 2 {
				t.Errorf("written file: %v", err)
			}
		})
	}
}

// limitedWriter fails once it is full.
type limitedWriter struct{ left int }

func (w *limitedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, errors.New("disk full")
	}
	w.left -= len(p)
	return len(p), nil
}

func TestWriteFails(t *testing.T) {
	for _, tt := range []struct {
		room int
		want string
	}{
		{10, "write header: disk full"},
		{128, `tensor "a": disk full`},
		{200, `tensor "a": disk full`},
	} {
		err := Write(&limitedWriter{tt.room}, []Tensor{u8("a", 100)}, nil, func(int) (io.Reader, error) {
			return bytes.NewReader(make([]byte, 100)), nil
		})
		wantError(t, err, nil, tt.want)
	}
}

func TestWriteInvalidWritesNothing(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, []Tensor{u8("", 1)}, nil, nil)
	wantError(t, err, ErrName, `tensor "": invalid tensor name`)
	if b.Len() != 0 {
		t.Errorf("%d bytes were written", b.Len())
	}
}
