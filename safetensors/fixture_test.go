package safetensors

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fixture is the content of a file in testdata, described by the script that created it
// (testdata/gen/safetensors/files.py).
type fixture struct {
	Metadata map[string]string
	Tensors  []struct {
		Name  string
		DType DType
		Shape []int64
		Data  string // hex
	}
}

func loadFixture(t *testing.T, stem string) (file *File, want fixture, data [][]byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", stem+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for _, w := range want.Tensors {
		b, err := hex.DecodeString(w.Data)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, b)
	}
	return openFile(t, filepath.Join("testdata", stem+".safetensors")), want, data
}

// TestReadFixtures reads files that the official library wrote or can read.
func TestReadFixtures(t *testing.T) {
	for _, stem := range []string{"python", "written"} {
		t.Run(stem, func(t *testing.T) {
			f, want, data := loadFixture(t, stem)
			if diff := cmp.Diff(want.Metadata, f.Header().Metadata); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if got := len(f.Header().Tensors); got != len(want.Tensors) {
				t.Fatalf("%d tensors, want %d", got, len(want.Tensors))
			}
			for i, w := range want.Tensors {
				got := f.Header().Tensors[i]
				if diff := cmp.Diff(Tensor{w.Name, w.DType, w.Shape, got.Begin, got.End}, got); diff != "" {
					t.Errorf("tensor %d (-want +got):\n%s", i, diff)
				}
				b, err := io.ReadAll(f.Reader(got))
				if err != nil || !bytes.Equal(b, data[i]) {
					t.Errorf("tensor %s holds %x, %v, want %x", w.Name, b, err, data[i])
				}
			}
		})
	}
}

// TestWriteFixture compares Write, for every dtype, with a file that was created according to the format specification
// and that the official library can read.
func TestWriteFixture(t *testing.T) {
	f, want, data := loadFixture(t, "written")
	var tensors []Tensor
	types := make(map[DType]bool)
	for _, w := range want.Tensors {
		tensors = append(tensors, Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape})
		types[w.DType] = true
	}
	if len(types) != 22 {
		t.Errorf("the fixture has %d types, want all 22", len(types))
	}
	var got bytes.Buffer
	err := Write(&got, tensors, want.Metadata, func(i int) (io.Reader, error) { return bytes.NewReader(data[i]), nil })
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), got.String()); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

// TestHeaderTextEqualsLibrary checks that for tensors in the library's order, the JSON equals the library's, byte for
// byte.
func TestHeaderTextEqualsLibrary(t *testing.T) {
	f, _, _ := loadFixture(t, "python")
	file, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := EncodeHeader(f.Header().Tensors, f.Header().Metadata)
	if err != nil {
		t.Fatal(err)
	}
	want := file[8:f.Header().DataOffset]
	if diff := cmp.Diff(string(bytes.TrimRight(want, " ")), string(bytes.TrimRight(got[8:], " "))); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
}
