package gguf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/quantize/ggml"
)

// TestMemory holds what reading a header takes, in multiples of the header: some times what is kept of it.
func TestMemory(t *testing.T) {
	const n = 100_000
	list := func(n int, text string) []byte {
		r := begin(0, 1).str("k")
		r.u32(uint32(gguf.Array)).u32(uint32(gguf.String)).u64(uint64(n))
		for range n {
			r.str(text)
		}
		return r.Bytes()
	}
	tensors := begin(n, 0)
	for i := range n {
		tensors.tensor(fmt.Sprintf("blk.%d.weight", i), ggml.F32, 0, 0)
	}
	one := begin(0, 1).str("k")
	one.u32(uint32(gguf.String)).str(strings.Repeat("x", 4<<20))
	numbers := begin(0, 1).str("k")
	numbers.u32(uint32(gguf.Array)).u32(uint32(gguf.Float32)).u64(n).bytes(4 * n)
	for _, c := range []struct {
		name        string
		file        []byte
		total, peak float64
	}{
		{"empty strings", list(n, ""), 3.5, 3.5}, {"tokens", list(n, "▁token"), 3.5, 3.5}, {"a text", one.Bytes(), 2, 2},
		{"numbers", numbers.Bytes(), 4, 4}, {"tensors", tensors.fill(tensors.Len() + 64), 6, 5},
	} {
		m := runtest.Allocated(func() any {
			h, err := read(c.file)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			return h
		})
		size := float64(len(c.file))
		t.Logf("%s: %.1f in all, %.1f at a time, %.1f kept", c.name, float64(m.Total)/size, float64(m.Peak)/size,
			float64(m.Kept)/size)
		if float64(m.Total) > c.total*size || float64(m.Peak) > c.peak*size {
			t.Errorf("%s: it takes %.1f times the header in all, %.1f at a time; at most %.1f and %.1f are expected", c.name,
				float64(m.Total)/size, float64(m.Peak)/size, c.total, c.peak)
		}
	}
}
