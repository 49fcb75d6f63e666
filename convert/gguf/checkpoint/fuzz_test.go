package checkpoint_test

import (
	"bytes"
	"os"
	"path/filepath"
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
	path := filepath.Join(f.TempDir(), "x.gguf")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 1<<20); err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.Open([]string{path}, checkpoint.Options{})
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
			if n := w.Shape[len(w.Shape)-1]; n <= 1<<16 {
				_ = w.Read.Floats(make([]byte, 4*n), 0, n)
			}
		}
	})
}
