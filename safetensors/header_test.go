package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadHeader(t *testing.T) {
	empty := []int64{}
	for _, tt := range []struct {
		name     string
		file     []byte
		tensors  []Tensor
		metadata map[string]string
	}{
		{"no tensors", raw(`{}`, 0), nil, nil},
		{"padding", raw("{} \n\t\r ", 0), nil, nil},
		{"empty metadata", raw(`{"__metadata__":{}}`, 0), nil, nil},
		{"null metadata", raw(`{"__metadata__":null}`, 0), nil, nil},
		{"metadata", raw(`{"__metadata__":{"a":"1","":"\u00e9\ud83d\udca1\/"}}`, 0), nil,
			map[string]string{"a": "1", "": "é💡/"}},
		{"scalar", raw(`{`+entry("s", "F32", "[]", "[0,4]")+`}`, 4), []Tensor{{"s", F32, empty, 0, 4}}, nil},
		{"empty tensor", raw(`{`+entry("e", "F32", "[3,0]", "[0,0]")+`}`, 0), []Tensor{{"e", F32, []int64{3, 0}, 0, 0}}, nil},
		{"packed types", raw(`{`+entry("4", "F4", "[2,3]", "[0,3]")+`,`+entry("6", "F6_E3M2", "[4]", "[3,6]")+`}`, 6),
			[]Tensor{{"4", F4, []int64{2, 3}, 0, 3}, {"6", F6E3M2, []int64{4}, 3, 6}}, nil},
		{"keys in any order, spaces", raw(`{ "t" : { "data_offsets" : [ 0 , 2 ] , "shape" : [ 2 ] , "dtype" : "I8" } }`, 2),
			[]Tensor{{"t", I8, []int64{2}, 0, 2}}, nil},
		{"data order, empty ones first, equal ones as in the header",
			raw(`{`+entry("c", "U8", "[2]", "[1,3]")+`,`+entry("z", "U8", "[0]", "[1,1]")+`,`+entry("y", "U8", "[0]",
				"[1,1]")+`,`+entry("a", "U8", "[1]", "[0,1]")+`}`, 3),
			[]Tensor{{"a", U8, []int64{1}, 0, 1}, {"z", U8, []int64{0}, 1, 1}, {"y", U8, []int64{0}, 1, 1},
				{"c", U8, []int64{2}, 1, 3}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readBytes(tt.file)
			if err != nil {
				t.Fatal(err)
			}
			offset := 8 + int64(binary.LittleEndian.Uint64(tt.file))
			want := &Header{tt.tensors, tt.metadata, offset, int64(len(tt.file))}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadHeaderDamaged covers every kind of invalid file.
func TestReadHeaderDamaged(t *testing.T) {
	one := entry("t", "U8", "[4]", "[0,4]")
	length := func(n uint64, rest string) []byte { return append(binary.LittleEndian.AppendUint64(nil, n), rest...) }
	tensor := func(dtype, shape, offsets string, data int) []byte {
		return raw("{"+entry("t", dtype, shape, offsets)+"}", data)
	}
	dims := func(n int, d string) string { return "[" + strings.TrimSuffix(strings.Repeat(d+",", n), ",") + "]" }
	for _, tt := range []struct {
		name     string
		file     []byte
		sentinel error
		want     string
	}{
		// The file as a whole.
		{"empty file", nil, ErrTruncated,
			"truncated file: 0 bytes, but the header's length alone takes 8; download it again"},
		{"seven bytes", make([]byte, 7), ErrTruncated, "truncated file: 7 bytes, but"},
		{"no header", length(0, ""), ErrHeader, "invalid header: JSON byte 0: want '{' as the first byte"},
		{"header cut off", length(100, "{}"), ErrTruncated,
			"truncated file: 10 bytes, but the header ends at byte 108; download it again"},
		{"header at the cap", length(MaxHeaderSize, "{}"), ErrTruncated,
			"truncated file: 10 bytes, but the header ends at byte 100000008"},
		{"header over the cap", length(MaxHeaderSize+1, "{}"), ErrHeaderTooLarge,
			"header too large: 100000001 bytes, the limit is 100000000"},
		{"length with the sign bit", length(1<<63, "{}"), ErrHeaderTooLarge, "header too large: 9223372036854775808 bytes"},
		{"length of all ones", length(math.MaxUint64, "{}"), ErrHeaderTooLarge,
			"header too large: 18446744073709551615 bytes"},
		{"Git LFS pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"), ErrHeader,
			"invalid header: it is a Git LFS pointer to a file of 5 bytes, not the file itself: run git lfs pull in its clone"},
		{"web page", []byte("<!DOCTYPE html><html></html>"), ErrHeader,
			"invalid header: it is an HTML page, as servers send with an error; download it again"},
		{"GGUF", []byte("GGUF\x03\x00\x00\x00"), ErrHeader, "invalid header: it is a GGUF file, want a safetensors file"},
		{"reserved space", make([]byte, 4096), ErrHeader,
			"invalid header: it is an unfinished download: it begins with zeros"},
		{"data cut off", raw("{"+one+"}", 3), ErrTruncated,
			`tensor "t": truncated file: the file has 64 bytes, but the header describes 65; download it again`},
		{"data cut off, second tensor", raw("{"+one+","+entry("u", "U8", "[4]", "[4,8]")+"}", 4), ErrTruncated,
			`tensor "u": truncated file: the file has 117 bytes, but the header describes 121`},
		{"bytes after the data", raw("{"+one+"}", 5), ErrTrailing,
			"bytes after the data: the file has 66 bytes, but the header describes 65"},
		{"bytes without tensors", raw("{}", 1), ErrTrailing,
			"bytes after the data: the file has 11 bytes, but the header describes 10"},

		// The JSON.
		{"not UTF-8", raw("{\"\xff\":1}", 0), ErrHeader, "invalid header: not UTF-8"},
		{"space first", raw(" {}", 0), ErrHeader, "invalid header: JSON byte 0: want '{' as the first byte"},
		{"array", raw("[]", 0), ErrHeader, "invalid header: JSON byte 0: want '{' as the first byte"},
		{"nothing", raw("    ", 0), ErrHeader, "invalid header: JSON byte 0: want '{' as the first byte"},
		{"trailing data", raw("{}{}", 0), ErrHeader, "invalid header: JSON byte 2: want the end, found '{'"},
		{"trailing zero byte", raw("{}\x00", 0), ErrHeader, `invalid header: JSON byte 2: want the end, found '\x00'`},
		{"trailing comma", raw("{"+one+",}", 4), ErrHeader, "invalid header: JSON byte 53: want '\"', found '}'"},
		{"no comma", raw("{"+one+one+"}", 4), ErrHeader, "invalid header: JSON byte 52: want ',', found '\"'"},
		{"no colon", raw(`{"t"{}}`, 0), ErrHeader, "invalid header: JSON byte 4: want ':', found '{'"},
		{"key without quotes", raw(`{t:{}}`, 0), ErrHeader, "invalid header: JSON byte 1: want '\"', found 't'"},
		{"unclosed", raw(`{`, 0), ErrHeader, "invalid header: JSON byte 1: want '\"', found the end"},
		{"unclosed string", raw(`{"t`, 0), ErrHeader, "invalid header: JSON byte 3: unterminated string"},
		{"unclosed escape", raw(`{"t\`, 0), ErrHeader, "invalid header: JSON byte 3: unterminated string"},
		{"unclosed after an escape", raw(`{"\n`, 0), ErrHeader, "invalid header: JSON byte 4: unterminated string"},
		{"bad escape", raw(`{"\x":1}`, 0), ErrHeader, "invalid header: JSON byte 2: invalid escape"},
		{"short escape", raw(`{"\u12"}`, 0), ErrHeader, "invalid header: JSON byte 2: invalid escape"},
		{"control character", raw("{\"a\nb\":1}", 0), ErrHeader,
			"invalid header: JSON byte 3: control character in a string"},
		{"control character after an escape", raw("{\"\\n\n\":1}", 0), ErrHeader,
			"invalid header: JSON byte 4: control character in a string"},
		{"lone high surrogate", raw(`{"\ud800":1}`, 0), ErrHeader, "invalid header: JSON byte 2: lone surrogate"},
		{"lone low surrogate", raw(`{"\udc00\ud800":1}`, 0), ErrHeader, "invalid header: JSON byte 2: lone surrogate"},
		{"two high surrogates", raw(`{"\ud800\ud800":1}`, 0), ErrHeader, "invalid header: JSON byte 2: lone surrogate"},
		{"deep nesting", raw(strings.Repeat(`{"a":`, 1<<20), 0), ErrHeader, `tensor "a": invalid header: unknown key "a"`},
		{"deep nesting in a shape", raw(`{"t":{"shape":`+strings.Repeat("[", 1<<20), 0), ErrHeader,
			`tensor "t": invalid header: JSON byte 15: want a number, found '['`},

		// Names and keys.
		{"empty name", raw("{"+entry("", "U8", "[0]", "[0,0]")+"}", 0), ErrName,
			`tensor "": invalid tensor name: it is empty`},
		{"duplicate tensor", raw("{"+one+","+one+"}", 4), ErrDuplicate,
			`entry "t": duplicate: it occurs twice in the header`},
		{"duplicate by an escape", raw("{"+one+","+entry(`\u0074`, "U8", "[4]", "[4,8]")+"}", 8), ErrDuplicate,
			`entry "t": duplicate`},
		{"duplicate metadata", raw(`{"__metadata__":{},"__metadata__":{}}`, 0), ErrDuplicate,
			`entry "__metadata__": duplicate`},
		{"duplicate null metadata", raw(`{"__metadata__":null,"__metadata__":{}}`, 0), ErrDuplicate,
			`entry "__metadata__": duplicate`},
		{"duplicate metadata key", raw(`{"__metadata__":{"a":"1","a":"1"}}`, 0), ErrDuplicate,
			`__metadata__: duplicate key "a"`},
		{"metadata number", raw(`{"__metadata__":{"a":1}}`, 0), ErrHeader,
			"__metadata__: invalid header: JSON byte 21: want '\"', found '1'"},
		{"metadata object", raw(`{"__metadata__":{"a":{}}}`, 0), ErrHeader,
			"__metadata__: invalid header: JSON byte 21: want '\"', found '{'"},
		{"metadata array", raw(`{"__metadata__":[]}`, 0), ErrHeader,
			"__metadata__: invalid header: JSON byte 16: want '{', found '['"},
		{"metadata nothing", raw(`{"__metadata__":nil}`, 0), ErrHeader,
			"__metadata__: invalid header: JSON byte 16: want null"},
		{"duplicate key in a tensor", raw(`{"t":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0),
			ErrDuplicate, `tensor "t": duplicate key "dtype"`},
		{"unknown key in a tensor", raw(`{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"strides":[1]}}`, 0), ErrHeader,
			`tensor "t": invalid header: unknown key "strides"`},
		{"no dtype", raw(`{"t":{"shape":[0],"data_offsets":[0,0]}}`, 0), ErrHeader,
			`tensor "t": invalid header: missing key "dtype"`},
		{"no shape", raw(`{"t":{"dtype":"U8","data_offsets":[0,0]}}`, 0), ErrHeader,
			`tensor "t": invalid header: missing key "shape"`},
		{"no data_offsets", raw(`{"t":{"dtype":"U8","shape":[0]}}`, 0), ErrHeader,
			`tensor "t": invalid header: missing key "data_offsets"`},
		{"tensor as a list", raw(`{"t":["U8",[4],[0,4]]}`, 4), ErrHeader,
			`tensor "t": invalid header: JSON byte 5: want '{', found '['`},
		{"tensor null", raw(`{"t":null}`, 0), ErrHeader, `tensor "t": invalid header: JSON byte 5: want '{', found 'n'`},
		{"long name", raw("{"+entry(strings.Repeat("n", 1<<20), "X", "[0]", "[0,0]")+"}", 0), ErrDType,
			`tensor "` + strings.Repeat("n", 120) + `"...: unknown dtype "X"`},
		{"name with a line break", raw("{"+entry(`a\nb`, "X", "[0]", "[0,0]")+"}", 0), ErrDType,
			`tensor "a\nb": unknown dtype "X"`},

		// Types.
		{"unknown dtype", tensor("F128", "[0]", "[0,0]", 0), ErrDType, `tensor "t": unknown dtype "F128"`},
		{"lower case dtype", tensor("bf16", "[0]", "[0,0]", 0), ErrDType, `tensor "t": unknown dtype "bf16"`},
		{"empty dtype", tensor("", "[0]", "[0,0]", 0), ErrDType, `tensor "t": unknown dtype ""`},
		{"dtype number", raw(`{"t":{"dtype":8,"shape":[0],"data_offsets":[0,0]}}`, 0), ErrHeader,
			`tensor "t": invalid header: JSON byte 14: want '"', found '8'`},

		// Shapes.
		{"negative dimension", tensor("U8", "[-1]", "[0,0]", 0), ErrShape,
			`tensor "t": invalid shape: "-1" is not a plain non-negative integer`},
		{"negative zero", tensor("U8", "[-0]", "[0,0]", 0), ErrShape, `tensor "t": invalid shape: "-0" is not`},
		{"fraction", tensor("U8", "[4.0]", "[0,4]", 4), ErrShape, `tensor "t": invalid shape: "4.0" is not`},
		{"exponent", tensor("U8", "[4e0]", "[0,4]", 4), ErrShape, `tensor "t": invalid shape: "4e0" is not`},
		{"leading zero", tensor("U8", "[04]", "[0,4]", 4), ErrShape, `tensor "t": invalid shape: "04" is not`},
		{"dimension over 63 bits", tensor("U8", "[9223372036854775808]", "[0,4]", 4), ErrShape,
			`tensor "t": invalid shape: "9223372036854775808" does not fit 63 bits`},
		{"huge number", tensor("U8", "["+strings.Repeat("9", 1<<20)+"]", "[0,4]", 4), ErrShape,
			`tensor "t": invalid shape: "` + strings.Repeat("9", 120) + `"... does not fit`},
		{"dimension string", tensor("U8", `["4"]`, "[0,4]", 4), ErrHeader,
			`tensor "t": invalid header: JSON byte 28: want a number, found '"'`},
		{"shape number", tensor("U8", "4", "[0,4]", 4), ErrHeader,
			`tensor "t": invalid header: JSON byte 27: want '[', found '4'`},
		{"elements overflow", tensor("U8", "[4294967296,4294967296]", "[0,0]", 0), ErrShape,
			`tensor "t": invalid shape [4294967296 4294967296]: the number of elements overflows`},
		{"elements overflow to the sign", tensor("U8", "[4294967296,2147483648]", "[0,0]", 0), ErrShape,
			`tensor "t": invalid shape [4294967296 2147483648]: the number`},
		{"elements overflow beside a zero", tensor("U8", "[0,4294967296,4294967296]", "[0,0]", 0), ErrShape,
			`tensor "t": invalid shape [0 4294967296 4294967296]: the number`},
		{"bytes overflow", tensor("F64", "[4611686018427387904]", "[0,0]", 0), ErrShape,
			`tensor "t": invalid shape [4611686018427387904]: the size overflows`},
		{"65 dimensions", tensor("U8", dims(65, "1"), "[0,1]", 1), ErrShape,
			`tensor "t": invalid shape: more than 64 dimensions`},
		{"half a byte", tensor("F4", "[3]", "[0,2]", 2), ErrShape,
			`tensor "t": invalid shape [3]: 3 elements of 4 bits are not a whole number of bytes`},
		{"part of a byte", tensor("F6_E2M3", "[2]", "[0,2]", 2), ErrShape,
			`tensor "t": invalid shape [2]: 2 elements of 6 bits are not`},

		// Offsets.
		{"begin after end", tensor("U8", "[4]", "[4,0]", 4), ErrOffsets,
			`tensor "t": invalid data_offsets [4,0]: begin is greater than end`},
		{"too small for the shape", tensor("F32", "[4]", "[0,4]", 4), ErrOffsets,
			`tensor "t": invalid data_offsets [0,4]: 4 bytes, but F32 [4] takes 16`},
		{"too large for the shape", tensor("U8", "[3]", "[0,4]", 4), ErrOffsets,
			`tensor "t": invalid data_offsets [0,4]: 4 bytes, but U8 [3] takes 3`},
		{"scalar without data", tensor("U8", "[]", "[0,0]", 0), ErrOffsets,
			`tensor "t": invalid data_offsets [0,0]: 0 bytes, but U8 [] takes 1`},
		{"negative offset", tensor("U8", "[4]", "[-4,0]", 4), ErrOffsets,
			`tensor "t": invalid data_offsets: "-4" is not a plain non-negative integer`},
		{"fractional offset", tensor("U8", "[4]", "[0,4.5]", 4), ErrOffsets,
			`tensor "t": invalid data_offsets: "4.5" is not`},
		{"offset over 63 bits", tensor("U8", "[4]", "[0,18446744073709551615]", 4), ErrOffsets,
			`tensor "t": invalid data_offsets: "18446744073709551615" does not fit 63 bits`},
		{"one offset", tensor("U8", "[0]", "[0]", 0), ErrOffsets,
			`tensor "t": invalid data_offsets: want two numbers, found 1`},
		{"three offsets", tensor("U8", "[0]", "[0,0,0]", 0), ErrOffsets,
			`tensor "t": invalid data_offsets: more than two numbers`},
		{"out of the file", tensor("U8", "[1000]", "[0,1000]", 4), ErrTruncated,
			`tensor "t": truncated file: the file has 71 bytes, but the header describes 1067`},
		{"far out of the file", tensor("U8", "[1152921504606846976]", "[0,1152921504606846976]", 4), ErrTruncated,
			`tensor "t": truncated file: the file has 101 bytes, but the header describes 1152921504606847073`},
		{"hole at the start", tensor("U8", "[3]", "[1,4]", 4), ErrHole,
			`tensor "t": hole in the data: it begins at 1, but the data before it ends at 0`},
		{"hole between", raw("{"+one+","+entry("u", "U8", "[1]", "[5,6]")+"}", 6), ErrHole,
			`tensor "u": hole in the data: it begins at 5, but the data before it ends at 4`},
		{"overlap", raw("{"+one+","+entry("u", "U8", "[3]", "[3,6]")+"}", 6), ErrOverlap,
			`tensor "u": overlapping data: it begins at 3, before the end of "t" at 4`},
		{"the same data twice", raw("{"+one+","+entry("u", "U8", "[4]", "[0,4]")+"}", 4), ErrOverlap,
			`tensor "u": overlapping data: it begins at 0, before the end of "t" at 4`},
		{"empty tensor inside another", raw("{"+one+","+entry("u", "U8", "[0]", "[2,2]")+"}", 4), ErrOverlap,
			`tensor "u": overlapping data: it begins at 2`},
		{"empty tensor after the end", raw("{"+one+","+entry("u", "U8", "[0]", "[5,5]")+"}", 4), ErrHole,
			`tensor "u": hole in the data: it begins at 5`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readBytes(tt.file)
			wantError(t, err, tt.sentinel, tt.want)
		})
	}
}

// failAt returns zeros, and an error from an offset on.
type failAt struct {
	at  int64
	err error
}

func (f failAt) ReadAt(p []byte, offset int64) (int, error) {
	clear(p)
	if offset == 0 {
		p[0] = 100
	}
	if n := f.at - offset; n < int64(len(p)) {
		return int(max(0, n)), f.err
	}
	return len(p), nil
}

func TestReadHeaderFailingReader(t *testing.T) {
	broken := errors.New("broken disk")
	for _, tt := range []struct {
		name     string
		r        failAt
		sentinel error
		want     string
	}{
		{"end in the length", failAt{3, io.EOF}, ErrTruncated,
			"truncated file: it ended at byte 3 while the header was read"},
		{"end in the text", failAt{50, io.EOF}, ErrTruncated,
			"truncated file: it ended at byte 50 while the header was read"},
		{"fault in the length", failAt{3, broken}, broken, "read header: broken disk"},
		{"fault in the text", failAt{50, broken}, broken, "read header: broken disk"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadHeader(tt.r, 1000)
			wantError(t, err, tt.sentinel, tt.want)
		})
	}
}

// largestRead records the size of the largest read.
type largestRead struct {
	*bytes.Reader
	size int
}

func (r *largestRead) ReadAt(p []byte, offset int64) (int, error) {
	r.size = max(r.size, len(p))
	return r.Reader.ReadAt(p, offset)
}

// TestReadHeaderAllocation checks that no buffer is allocated for a length that exceeds the file.
func TestReadHeaderAllocation(t *testing.T) {
	file := append(binary.LittleEndian.AppendUint64(nil, MaxHeaderSize), "{}"...)
	r := &largestRead{Reader: bytes.NewReader(file)}
	_, err := ReadHeader(r, int64(len(file)))
	wantError(t, err, ErrTruncated, "truncated file: ")
	if r.size > len(file) {
		t.Errorf("a buffer of %d bytes for a file of %d", r.size, len(file))
	}
}

func TestTensorSize(t *testing.T) {
	for _, tt := range []struct {
		dtype       DType
		shape       []int64
		count, size int64
	}{
		{F32, nil, 1, 4},
		{F32, []int64{2, 3}, 6, 24},
		{BF16, []int64{0, 5}, 0, 0},
		{F4, []int64{2, 8}, 16, 8},
		{F6E2M3, []int64{4}, 4, 3},
		{C64, []int64{2}, 2, 16},
		{U8, []int64{1 << 60}, 1 << 60, 1 << 60},
		{U8, []int64{-1}, -1, -1},
		{U16, []int64{math.MaxInt64}, math.MaxInt64, -1},
		{F4, []int64{3}, 3, -1},
		{"F128", []int64{1}, 1, -1},
		{U8, make([]int64, 65), -1, -1},
	} {
		got := Tensor{DType: tt.dtype, Shape: tt.shape}
		if got.NumElements() != tt.count || got.Size() != tt.size {
			t.Errorf("%s %v: %d elements, %d bytes, want %d, %d", tt.dtype, tt.shape, got.NumElements(), got.Size(), tt.count,
				tt.size)
		}
	}
}
