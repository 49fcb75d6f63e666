package verify

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/scores"
)

// Every token of a long text is compared once, with the context that its window gives it. A model equals itself.
func TestAgainst(t *testing.T) {
	l := loadModel(t, "demo")
	rows, err := Against(t.Context(), l.Model(), Loaded(l.Model()), quality.Text, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin, tokens, err := commonTokens(t.Context(), l.Model().Processor, l.Model().Processor, quality.Text)
	if err != nil {
		t.Fatal(err)
	}
	first := 1 - len(begin)
	if len(rows) != len(tokens)-first || len(tokens) < 2*Window {
		t.Fatalf("%d rows of %d tokens", len(rows), len(tokens))
	}
	if r := quality.Summarize(rows); r.MaxKL != 0 || r.Top1.Value != 1 || r.PerplexityRatio.Value != 1 {
		t.Errorf("against itself: %+v", r)
	}
	body := Window - len(begin)
	for _, i := range []int{first, 10, body - 1, body, body + body/2 - 1, body + body/2, len(tokens) - 1} {
		start := 0
		for start+body <= i {
			start += body / 2
		}
		var last []float32
		if err := forward(t.Context(), l.Model(), append(begin[:len(begin):len(begin)], tokens[start:i]...), nil,
			func(scores []float32) { last = scores }); err != nil {
			t.Fatal(err)
		}
		if want := quality.Judge(last, last, tokens[i]).Base; math.Abs(rows[i-first].Base-want) > 0.05*max(1, want) {
			t.Errorf("token %d: %v, want %v", i, rows[i-first].Base, want)
		}
	}
}

func TestAgainstRefuses(t *testing.T) {
	demo, llama, none := loadModel(t, "demo"), loadModel(t, "llama-default"), loadModel(t, "llama-tied")
	for _, test := range []struct {
		name string
		base *batch.Engine
		text string
		want error
	}{
		{"other tokens", llama, quality.Text, ErrNotComparable},
		{"no tokens", none, quality.Text, nil},
		{"short text", demo, "a", ErrNotComparable},
		{"empty text", demo, "", ErrNotComparable},
	} {
		_, err := Against(t.Context(), demo.Model(), Loaded(test.base.Model()), test.text, nil)
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A base whose scores are known is not loaded, and the result is the same to the bit. Damaged scores
// are computed again.
func TestAgainstKnown(t *testing.T) {
	demo := loadModel(t, "demo").Model()
	long, short := quality.Text[:2000], quality.Text[:500]
	dir := t.TempDir()
	loads := 0
	compare := func(key, text string) []quality.Row {
		t.Helper()
		base := Loaded(demo)
		base.Scores, base.Key = scores.Cache{Dir: dir}, key
		base.Load = func(context.Context) (*load.Model, error) { loads++; return demo, nil }
		rows, err := Against(t.Context(), demo, base, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	files := func() []string {
		list, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	want := compare("a", long)
	for i, step := range []struct {
		key, text string
		loads     int
	}{
		{"a", long, 1}, {"b", long, 2}, {"a", short, 3}, {"a", short, 3},
		{"a", long, 3}, {"b", long, 3},
	} {
		rows := compare(step.key, step.text)
		if loads != step.loads {
			t.Errorf("step %d: the base was loaded %d times, want %d", i, loads, step.loads)
		}
		if step.text == long && !slices.Equal(rows, want) {
			t.Errorf("step %d: the rows differ", i)
		}
	}
	if list := files(); len(list) != 3 {
		t.Fatalf("files %v", list)
	}
	for _, path := range files() {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-5] ^= 1 // in the last record
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if rows := compare("a", long); !slices.Equal(rows, want) || loads != 4 {
		t.Errorf("damaged scores: %d loads", loads)
	}
	if len(files()) != 2 {
		t.Errorf("the damaged file stays: %v", files())
	}
}
