package quality

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ingotml/ingot/models/modeltest"
)

// near compares with a tolerance of one in a million.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func nearEstimate(t *testing.T, what string, got, want Estimate) {
	t.Helper()
	near(t, what, got.Value, want.Value)
	near(t, "standard error of "+what, got.Error, want.Error)
}

// rows compares the demo model's reference logits with the same logits, rounded to quarters.
func rows(t *testing.T) (list []Row) {
	t.Helper()
	scores, tokens := modeltest.Golden[float32](t, "demo", "logits"), modeltest.Golden[int32](t, "demo", "tokens")
	vocab := len(scores) / len(tokens)
	for i, next := range tokens[1:] {
		base, coarse := scores[i*vocab:][:vocab], make([]float32, vocab)
		for j, v := range base {
			coarse[j] = float32(math.RoundToEven(4*float64(v)) / 4)
		}
		list = append(list, Judge(base, coarse, next))
	}
	return list
}

func TestReportMatchesFloat64(t *testing.T) {
	b, err := os.ReadFile("testdata/demo.json")
	if err != nil {
		t.Fatal(err)
	}
	var want Report
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	got := Summarize(rows(t))
	if got.Tokens != want.Tokens {
		t.Errorf("%d tokens, want %d", got.Tokens, want.Tokens)
	}
	nearEstimate(t, "the base's perplexity", got.BasePerplexity, want.BasePerplexity)
	nearEstimate(t, "perplexity", got.Perplexity, want.Perplexity)
	nearEstimate(t, "their ratio", got.PerplexityRatio, want.PerplexityRatio)
	nearEstimate(t, "mean divergence", got.MeanKL, want.MeanKL)
	nearEstimate(t, "top 1", got.Top1, want.Top1)
	nearEstimate(t, "flips", got.Flips, want.Flips)
	near(t, "standard error of the median", got.MedianKLError, want.MedianKLError)
	near(t, "standard error of 99 of 100", got.KL99Error, want.KL99Error)
	near(t, "median divergence", got.MedianKL, want.MedianKL)
	near(t, "99 of 100", got.KL99, want.KL99)
	near(t, "largest divergence", got.MaxKL, want.MaxKL)
}

func TestJudge(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, test := range []struct {
		name        string
		base, other []float32
		kl          float64
		top         bool
	}{
		{"the same", []float32{1, 2, 3}, []float32{1, 2, 3}, 0, true},
		{"the same, higher", []float32{1, 2, 3}, []float32{101, 102, 103}, 0, true},
		{"two even", []float32{0, 0}, []float32{0, float32(math.Log(3))}, math.Log(2) - math.Log(3)/2, false},
		{"far away", []float32{1e4, 0}, []float32{0, 0}, math.Log(2), true},
		{"nobody takes one", []float32{0, -inf}, []float32{0, -inf}, 0, true},
		{"one takes it", []float32{0, 0}, []float32{0, -inf}, math.Inf(1), true},
		{"infinite", []float32{0, 1}, []float32{0, inf}, math.Inf(1), true},
		{"no number", []float32{0, 1}, []float32{nan, 1}, math.Inf(1), false},
	} {
		r := Judge(test.base, test.other, 0)
		if math.Abs(r.KL-test.kl) > 1e-6 || math.IsInf(test.kl, 1) && !math.IsInf(r.KL, 1) || test.name != "no number" &&
			r.Top != test.top || r.Finite() == math.IsInf(test.kl, 1) {
			t.Errorf("%s: %+v, want %v and %v", test.name, r, test.kl, test.top)
		}
	}
}

// A plot is valid XML and contains the report's values, also for a flat distribution.
func TestPlot(t *testing.T) {
	for name, list := range map[string][]Row{"demo": rows(t), "equal": {{1, 1, 0, true, false}, {2, 2, 0, true, false}},
		"one": {{1, 2, 0.3, false, true}}} {
		var b bytes.Buffer
		if err := Plot(&b, "a & <b>", list); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if text := b.String(); !strings.Contains(text, "a &amp; &lt;b&gt;") || !strings.Contains(text, ">median ") ||
			strings.Contains(text, "NaN") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestQuantile(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 0.5: 2, 0.75: 3, 1: 4} {
		if got := Quantile([]float64{1, 2, 4}, q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}

func TestText(t *testing.T) {
	if len(Text) < 5000 || !utf8.ValidString(Text) {
		t.Errorf("%d bytes", len(Text))
	}
}

// The fast exponential agrees with that of the standard library wherever it is not too small to count.
func TestExp(t *testing.T) {
	for x := 0.0; x > smallest; x -= 0.00917 {
		want := math.Exp(x)
		if got := exp(x); math.Abs(got-want) > 4e-16*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if exp(math.Inf(-1)) != 0 || exp(-750) != 0 || exp(0) != 1 || !math.IsNaN(exp(math.NaN())) {
		t.Errorf("exp(-Inf) = %v, exp(-750) = %v, exp(0) = %v, exp(NaN) = %v", exp(math.Inf(-1)), exp(-750), exp(0),
			exp(math.NaN()))
	}
}

func BenchmarkJudge(b *testing.B) {
	base, other := make([]float32, 49152), make([]float32, 49152)
	for i := range base {
		base[i] = float32(i*7919%1009) / 60
		other[i] = base[i] + float32(i%13)/50
	}
	for b.Loop() {
		Judge(base, other, 5)
	}
}
