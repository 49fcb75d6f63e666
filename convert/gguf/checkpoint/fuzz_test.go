package checkpoint_test

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/gguf/checkpoint"
	"github.com/ingotml/ingot/convert/gguf/gguftest"
	"github.com/ingotml/ingot/quantize/ggml"
)

// header returns what a file has before its data. FuzzOpen appends zeros for the data.
func header(f *testing.F, file *gguftest.File) []byte {
	b := file.Bytes(f)
	h, err := gguf.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		f.Fatal(err)
	}
	return b[:h.Data]
}

// FuzzOpen checks that any file is a checkpoint whose rows can be read, or a short error.
func FuzzOpen(f *testing.F) {
	small := gguftest.Llama(ggml.Q4_0)
	f.Add(header(f, small))
	small.Set("llama.rope.scaling.type", gguf.Text("yarn"))
	small.Add("rope_freqs.weight", ggml.F32, gguftest.Hidden/gguftest.Heads/2)
	f.Add(header(f, small))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := checkpoint.Open(memory{data}, []string{"x.gguf"}, checkpoint.Options{})
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 4000 {
				t.Errorf("%d bytes: %v", len(err.Error()), err)
			}
			return
		}
		for _, file := range c.Sources() {
			defer file.Close()
		}
		for _, w := range c.Weights {
			if n := w.Shape[len(w.Shape)-1]; n <= 1<<16 && !slices.Contains(w.Shape, 0) {
				_ = w.Read.Floats(make([]byte, 4*n), 0, n)
			}
		}
	})
}

// memory is a folder with one file.
type memory struct{ header []byte }

func (m memory) Path(name string) string               { return name }
func (m memory) Open(string) (fs.File, error)          { return memoryFile(m), nil }
func (m memory) Stat(string) (fs.FileInfo, error)      { return memoryInfo{}, nil }
func (m memory) ReadDir(string) ([]fs.DirEntry, error) { return nil, fs.ErrInvalid }

// memoryFile is a header that is followed by zeros.
type memoryFile struct{ header []byte }

const memorySize = 2 << 20

func (m memoryFile) Read([]byte) (int, error)   { return 0, fs.ErrInvalid }
func (m memoryFile) Stat() (fs.FileInfo, error) { return memoryInfo{}, nil }
func (m memoryFile) Close() error               { return nil }

func (m memoryFile) ReadAt(p []byte, offset int64) (int, error) {
	n := int(min(int64(len(p)), max(memorySize-offset, 0)))
	clear(p[copy(p[:n], m.header[min(offset, int64(len(m.header))):]):n])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

type memoryInfo struct{ fs.FileInfo }

func (memoryInfo) Size() int64 { return memorySize }
