package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/runtest"
)

// times joins n values of JSON.
func times(n int, value func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = value(i)
	}
	return strings.Join(list, ",")
}

// keys are n keys with the least values.
func keys(n int) string { return times(n, func(i int) string { return fmt.Sprintf(`"k%d":0`, i) }) }

// TestMemory holds what an import takes for each file, in multiples of its size, whatever the file has. Files of few
// bytes for each value are the worst.
func TestMemory(t *testing.T) {
	const n = 12_000
	const slack = 4 << 20 // what garbage adds to a measurement
	demo := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "testdata", "models", "demo", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	in := func(text, after, more string) string {
		if !strings.Contains(text, after) {
			t.Fatalf("there is no %s", after)
		}
		return strings.Replace(text, after, after+more+",", 1)
	}
	tokenizer := demo("tokenizer.json")
	for _, c := range []struct {
		name, text string
		peak       float64
	}{
		{"config.json", in(tinyConfig, "{", keys(n)), 60},
		{"config.json", in(tinyConfig, "{", `"text":"`+strings.Repeat("x", 1<<20)+`"`), 12},
		{"config.json", in(tinyConfig, "{", `"quantization_config":{"quant_method":"x",`+keys(n)+"}"), 60},
		{"config.json", in(tinyConfig, "{", `"list":[`+times(n, func(int) string { return "{}" })+"]"), 24},
		{"generation_config.json", "{" + keys(n) + "}", 60}, {"modules.json", "{" + keys(n) + "}", 60},
		{"tokenizer_config.json", in(demo("tokenizer_config.json"), "{", keys(n)), 60},
		{"special_tokens_map.json", "{" + keys(n) + "}", 60},
		{"tokenizer.json", in(tokenizer, `"vocab": {`, times(n, func(i int) string {
			return fmt.Sprintf(`"k%d":%d`, i, 2000+i)
		})), 60},
		{source.IndexName, `{"weight_map":{` + times(n, func(i int) string {
			return fmt.Sprintf(`"k%d":"a.safetensors"`, i)
		}) + "}}", 16},
		{"README.md", strings.Repeat("# Model\n", 1<<17), 5},
	} {
		dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
		for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
			writeFile(t, filepath.Join(dir, name), []byte(demo(name)))
		}
		planned := func() any {
			p, err := DryRun(t.Context(), nil, from(dir), Options{})
			return []any{p, err}
		}
		plain := runtest.Allocated(planned)
		writeFile(t, filepath.Join(dir, c.name), []byte(c.text))
		m := runtest.Allocated(planned)
		peak := float64(m.Peak-plain.Peak) / float64(len(c.text))
		t.Logf("%s: %.1f in all, %.1f at a time", c.name, float64(m.Total-plain.Total)/float64(len(c.text)), peak)
		if float64(m.Peak-plain.Peak) > c.peak*float64(len(c.text))+slack {
			t.Errorf("%s of %d bytes: it takes %.1f times as much, at most %.1f are expected", c.name, len(c.text), peak, c.peak)
		}
	}
}

// TestLargeFiles checks that files beyond the bounds are refused before they are read, by an import and by a run.
func TestLargeFiles(t *testing.T) {
	for name, size := range map[string]int64{
		"config.json": limits.ModelJSON, "generation_config.json": limits.ModelJSON, "tokenizer.json": limits.ModelFile,
		"README.md": limits.ModelFile, "LICENSE": limits.ModelFile,
	} {
		dir := tiny(t, tinyConfig, 1).write(t, t.TempDir())
		path := filepath.Join(dir, name)
		writeFile(t, path, []byte("{}"))
		if err := os.Truncate(path, size+1); err != nil {
			t.Fatal(err)
		}
		var err error
		m := runtest.Allocated(func() any { _, err = DryRun(t.Context(), nil, from(dir), Options{}); return nil })
		if err == nil || !strings.Contains(err.Error(), "more than") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if m.Total > 8<<20 {
			t.Errorf("%s: %d bytes are allocated", name, m.Total)
		}
	}
	many := `{"x":[` + times(limits.JSONElements+1, func(int) string { return "0" }) + "]}"
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer_config.json", "modules.json"} {
		create, _ := created(t, map[string]string{name: many})
		if create == nil || !strings.Contains(create.Error(), "values in one object") {
			t.Errorf("%s: %v", name, create)
		}
	}
}
