package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sentinels are the errors of which every parser error must wrap one.
var sentinels = []error{ErrHeader, ErrHeaderTooLarge, ErrTruncated, ErrTrailing, ErrName, ErrDuplicate, ErrDType,
	ErrShape,
	ErrOffsets, ErrOverlap, ErrHole, ErrIndex}

func isKnown(err error) bool {
	for _, s := range sentinels {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// FuzzReadHeader checks that accepted headers cover the file without gaps and survive a round trip, and that every
// error is a short line that wraps a sentinel. It tries the input as a whole file, and as the JSON of a file with
// matching data.
func FuzzReadHeader(f *testing.F) {
	for _, stem := range []string{"python", "written"} {
		file, err := os.ReadFile(filepath.Join("testdata", stem+".safetensors"))
		if err != nil {
			f.Fatal(err)
		}
		h, err := readBytes(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file, uint16(0))
		f.Add(file[8:h.DataOffset], uint16(h.Size-h.DataOffset))
	}
	for _, header := range []string{
		`{}`, `{} `, `{"__metadata__":null}`, `{"__metadata__":{"a":"\ud83d\udca1","b":"\\\""}}`,
		`{` + entry("a", "F4", "[2,1]", "[0,1]") + `,` + entry("b", "F6_E2M3", "[4]", "[1,4]") + `}`,
		`{` + entry("a", "U8", "[0,9]", "[1,1]") + `,` + entry("b", "BOOL", "[]", "[0,1]") + `,` +
			entry("c", "I8", "[3]", "[1,4]") + `}`,
		`{` + entry("a", "C64", "[4611686018427387904,2]", "[0,4]") + `}`,
		`{` + entry("a", "U8", "[4]", "[0,4]") + `,` + entry("a", "U8", "[4]", "[0,4]") + `}`,
		`{` + entry("a", "F16", "[-2]", "[0,4.5e0]") + `}`,
		`{` + strings.Repeat(`"a":{`, 40),
	} {
		f.Add([]byte(header), uint16(4))
		f.Add(raw(header, 4), uint16(0))
	}
	f.Fuzz(func(t *testing.T, input []byte, data uint16) {
		checkRead(t, input)
		checkRead(t, raw(string(input), int(data)))
	})
}

func checkRead(t *testing.T, file []byte) {
	t.Helper()
	h, err := readBytes(file)
	if err != nil {
		if !isKnown(err) || strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 4096 {
			t.Fatalf("error %q", err)
		}
		return
	}
	if h.Size != int64(len(file)) || h.DataOffset < 10 || h.DataOffset > h.Size {
		t.Fatalf("data at %d, size %d of %d", h.DataOffset, h.Size, len(file))
	}
	if !json.Valid(file[8:h.DataOffset]) {
		t.Fatalf("the standard decoder refuses %q", file[8:h.DataOffset])
	}
	names := make(map[string]bool)
	var end int64
	for _, tensor := range h.Tensors {
		if tensor.Begin != end || tensor.End < tensor.Begin || tensor.End-tensor.Begin != tensor.Size() {
			t.Fatalf("%+v after %d", tensor, end)
		}
		if names[tensor.Name] || checkName(tensor.Name) != nil || tensor.NumElements() < 0 {
			t.Fatalf("%+v", tensor)
		}
		names[tensor.Name] = true
		end = tensor.End
	}
	if h.DataOffset+end != h.Size {
		t.Fatalf("the data ends at %d of %d", h.DataOffset+end, h.Size)
	}
	header, out, err := EncodeHeader(h.Tensors, h.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadHeader(bytes.NewReader(header), int64(len(header))+end)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Tensors) > 0 && !cmp.Equal(h.Tensors, out) || !cmp.Equal(h.Tensors, again.Tensors) ||
		!cmp.Equal(h.Metadata, again.Metadata) {
		t.Fatalf("written and read again:\n%s", cmp.Diff(h, again))
	}
	if again.DataOffset != int64(len(header)) || again.DataOffset%smallAlign != 0 {
		t.Fatalf("data at %d", again.DataOffset)
	}
}

// FuzzIndex checks that encoding/json reads an accepted index the same way, and that its shards are plain file names.
func FuzzIndex(f *testing.F) {
	for _, seed := range []string{
		`{"weight_map":{"a":"model.safetensors"}}`,
		`{"metadata":{"total_size":1e3,"l":[true,false,null,-1.5]},"weight_map":{"a":"x.safetensors","b":"y.safetensors"},` +
			`"z":{}}`,
		`{"weight_map":{"a":"..\/x.safetensors"}}`,
		`{"weight_map":{"\ud83d\udca1":"\u0041.safetensors"}}`,
		`{"weight_map":{"a":"x.safetensors","a":"x.safetensors"}}`,
		`{"m":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `,"weight_map":{}}`,
		`{"weight_map":null}`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseIndex(text)
		if err != nil {
			if !errors.Is(err, ErrIndex) || strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 4096 {
				t.Fatalf("error %q", err)
			}
			return
		}
		list := make(map[string]string)
		for _, w := range got {
			tensor, shard := w.tensor, w.shard
			list[tensor] = shard
			if checkName(tensor) != nil || filepath.Base(shard) != shard || !filepath.IsLocal(shard) {
				t.Fatalf("tensor %q in shard %q", tensor, shard)
			}
		}
		standard := make(map[string]any)
		if err := json.Unmarshal(text, &standard); err != nil {
			// A number beyond float64 in an ignored key.
			if strings.Contains(err.Error(), "cannot unmarshal number") {
				return
			}
			t.Fatalf("the standard decoder says %v", err)
		}
		want := make(map[string]string)
		for tensor, shard := range standard["weight_map"].(map[string]any) {
			want[tensor] = shard.(string)
		}
		if !cmp.Equal(want, list) {
			t.Fatalf("the standard decoder reads\n%s", cmp.Diff(want, list))
		}
	})
}
