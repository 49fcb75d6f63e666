package safetensors

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

// entries joins n entries of a JSON object.
func entries(n int, entry func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(entry(i))
	}
	return b.String()
}

func emptyTensor(i int) string { return entry(fmt.Sprintf("t%d", i), "F32", "[0]", "[0,0]") }

// TestMemory holds what reading takes, in multiples of the file: its text, and some times what is kept of it.
func TestMemory(t *testing.T) {
	const n = 50_000
	index := `{"weight_map":{` + entries(n, func(i int) string {
		return fmt.Sprintf(`"model.layers.%d.mlp.up_proj.weight":"model-00001-of-00002.safetensors"`, i)
	}) + "}}"
	header := func(text string) func() any {
		file := raw(text, 0)
		return func() any {
			h, err := readBytes(file)
			if err != nil {
				t.Error(err)
			}
			return h
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, indexName), []byte(index), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		size        int
		read        func() any
		total, peak float64
	}{
		{"empty tensors", len(entries(n, emptyTensor)), header("{" + entries(n, emptyTensor) + "}"), 4.5, 4},
		{"a text", 4 << 20, header(`{"__metadata__":{"a":"` + strings.Repeat("x", 4<<20) + `"}}`), 2.5, 2.5},
		{"many texts", 8 * n, header(`{"__metadata__":{` + entries(n, func(i int) string {
			return fmt.Sprintf(`"%05d":""`, i)
		}) + `}}`), 26, 18},
		{"an index", len(index), func() any {
			list, err := readIndex(Dir(dir))
			if err != nil {
				t.Error(err)
			}
			return list
		}, 4.5, 3.5},
	} {
		m := runtest.Allocated(c.read)
		size := float64(c.size)
		t.Logf("%s: %.1f in all, %.1f at a time, %.1f kept", c.name, float64(m.Total)/size, float64(m.Peak)/size,
			float64(m.Kept)/size)
		if float64(m.Total) > c.total*size || float64(m.Peak) > c.peak*size {
			t.Errorf("%s: it takes %.1f times the file in all, %.1f at a time; at most %.1f and %.1f are expected", c.name,
				float64(m.Total)/size, float64(m.Peak)/size, c.total, c.peak)
		}
	}
}

// TestManyTensors reaches the bound on tensors of a file, of its metadata, of an index, and of all files of a
// checkpoint.
func TestManyTensors(t *testing.T) {
	if runtest.Race && !runtest.Long() {
		t.Skip("it takes a minute under the race detector")
	}
	over := "{" + entries(limits.Tensors+1, emptyTensor) + "}"
	if _, err := readBytes(raw(over, 0)); !errors.Is(err, ErrHeaderTooLarge) {
		t.Errorf("a header: %.200v", err)
	}
	texts := entries(limits.Tensors+1, func(i int) string { return fmt.Sprintf(`"%d":""`, i) })
	if _, err := readBytes(raw(`{"__metadata__":{`+texts+`}}`, 0)); !errors.Is(err, ErrHeaderTooLarge) {
		t.Errorf("metadata: %.200v", err)
	}
	list := entries(limits.Tensors+1, func(i int) string { return fmt.Sprintf(`"%d":"x.safetensors"`, i) })
	if _, err := parseIndex([]byte(`{"weight_map":{` + list + `}}`)); !errors.Is(err, ErrIndex) {
		t.Errorf("an index: %.200v", err)
	}
	dir := t.TempDir()
	for i := range 3 {
		text := "{" + entries(limits.Tensors/2, func(k int) string { return emptyTensor(i*limits.Tensors + k) }) + "}"
		name := fmt.Sprintf("model-%05d-of-00003.safetensors", i+1)
		if err := os.WriteFile(filepath.Join(dir, name), raw(text, 0), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenCheckpoint(dir); !errors.Is(err, ErrHeaderTooLarge) {
		t.Errorf("three files: %.200v", err)
	}
}
