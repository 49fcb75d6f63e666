package metrics

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
)

func TestHistogram(t *testing.T) {
	h := newHistogram(seconds(.1, 1))
	for _, d := range []time.Duration{0, 100 * time.Millisecond, 101 * time.Millisecond, time.Second, time.Hour} {
		h.observe(d)
	}
	var e exposition
	e.family("x", histogramKind, "X.").histogram(h, "model", `a"b\c`+"\n")
	for _, line := range []string{
		`x_bucket{model="a\"b\\c\n",le="0.1"} 2`, `x_bucket{model="a\"b\\c\n",le="1"} 4`,
		`x_bucket{model="a\"b\\c\n",le="+Inf"} 5`,
		`x_count{model="a\"b\\c\n"} 5`, `x_sum{model="a\"b\\c\n"} 3601.201`,
	} {
		if !strings.Contains(e.String(), "\n"+line+"\n") {
			t.Errorf("%s\nlacks %s", e.String(), line)
		}
	}
}

// The number of models with their own metrics is limited.
func TestMetricsAreBounded(t *testing.T) {
	var m Metrics
	for i := range 2 * maxMeasured {
		m.model(strconv.Itoa(i)).tokens.Add(1)
	}
	if len(m.models) > maxMeasured+1 || m.model(otherModels).tokens.Load() != maxMeasured {
		t.Errorf("%d models, %d tokens of others", len(m.models), m.model(otherModels).tokens.Load())
	}
}

func BenchmarkResponseMetrics(b *testing.B) {
	var m Metrics
	w := m.StartResponse("m", time.Now())
	e := runtime.Event{IDs: []int32{1}, Text: "x"}
	b.ReportAllocs()
	for b.Loop() {
		e.Stats.Tokens++
		w.Observe(e)
	}
}
