package verify

import (
	"errors"
	"math"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/quality"
)

// Plain keys and values cost nothing, q4 more than q8, and the first row is that of a whole evaluation.
func TestKVTypes(t *testing.T) {
	m := loadModel(t, "demo").Model()
	types := []runtime.KVType{runtime.KVPlain, runtime.KVQ8, runtime.KVQ4}
	const most = 300 // more than a chunk
	rows, err := KVTypes(t.Context(), m, types, quality.Text, most, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kl [3]float64
	for i, r := range rows {
		if len(r) != most-1 {
			t.Fatalf("%d rows, want %d", len(r), most-1)
		}
		s := quality.Summarize(r)
		kl[i] = s.MeanKL.Value
		if s.BasePerplexity != quality.Summarize(rows[0]).BasePerplexity {
			t.Errorf("type %d has another base", i)
		}
	}
	if kl[0] != 0 || !(0 < kl[1] && kl[1] < kl[2]) {
		t.Errorf("mean divergences of plain, q8 and q4: %v", kl)
	}
	begin, tokens, err := commonTokens(t.Context(), m.Processor, m.Processor, quality.Text)
	if err != nil {
		t.Fatal(err)
	}
	tokens = append(begin, tokens...)
	var last []float32
	const at = 280
	if err := forward(t.Context(), m, tokens[:at+1], nil, func(logits []float32) { last = logits }); err != nil {
		t.Fatal(err)
	}
	if want := quality.Judge(last, last, tokens[at+1]).Base; math.Abs(rows[1][at].Base-want) > 0.05*max(1, want) {
		t.Errorf("row %d: %v, want %v", at, rows[1][at].Base, want)
	}
	if _, err := KVTypes(t.Context(), m, types, "short", most, nil); !errors.Is(err, ErrNotComparable) {
		t.Errorf("a short text: %v", err)
	}
}
