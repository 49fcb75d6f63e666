package verify

import (
	"errors"
	"math"
	"testing"

	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/quality"
)

// Every token of a long text is compared once, with the context that its window gives it. A model equals itself.
func TestAgainst(t *testing.T) {
	l := loadModel(t, "demo")
	rows, err := Against(t.Context(), l.Model(), l.Model(), quality.Text, nil)
	if err != nil {
		t.Fatal(err)
	}
	begin, tokens, err := commonTokens(l.Model(), l.Model(), quality.Text)
	if err != nil {
		t.Fatal(err)
	}
	first := 1 - len(begin)
	if len(rows) != len(tokens)-first || len(tokens) < 2*textWindow {
		t.Fatalf("%d rows of %d tokens", len(rows), len(tokens))
	}
	if r := quality.Summarize(rows); r.MaxKL != 0 || r.Top1.Value != 1 || r.PerplexityRatio.Value != 1 {
		t.Errorf("against itself: %+v", r)
	}
	body := textWindow - len(begin)
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
		_, err := Against(t.Context(), demo.Model(), test.base.Model(), test.text, nil)
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
