package metrics

import (
	"bytes"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The text format of Prometheus, version 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/

// ContentType is the media type of the text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// exposition is a text in that format.
type exposition struct{ bytes.Buffer }

// Metric types.
const (
	counterKind   = "counter"
	gaugeKind     = "gauge"
	histogramKind = "histogram"
)

// family starts a metric. Its samples follow.
func (e *exposition) family(name, kind, help string) *family {
	e.WriteString("# HELP " + name + " " + help + "\n# TYPE " + name + " " + kind + "\n")
	return &family{e, name}
}

// family adds samples to a metric. Labels alternate names and values.
type family struct {
	to   *exposition
	name string
}

func (f *family) add(value float64, labels ...string) { f.sample("", value, labels) }

func (f *family) sample(suffix string, value float64, labels []string) {
	b := &f.to.Buffer
	b.WriteString(f.name + suffix)
	for i := 0; i < len(labels); i += 2 {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteString(labels[i] + `="` + labelEscaper.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteByte(' ')
	b.Write(strconv.AppendFloat(nil, value, 'g', -1, 64))
	b.WriteByte('\n')
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// histogram adds a histogram. As the format requires, bucket counts are cumulative.
func (f *family) histogram(h *histogram, labels ...string) {
	labels = append(labels, "le", "")
	le, below := &labels[len(labels)-1], int64(0)
	for i, bound := range h.bounds {
		below += h.counts[i].Load()
		*le = strconv.FormatFloat(bound.Seconds(), 'g', -1, 64)
		f.sample("_bucket", float64(below), labels)
	}
	below += h.counts[len(h.bounds)].Load()
	*le = "+Inf"
	f.sample("_bucket", float64(below), labels)
	labels = labels[:len(labels)-2]
	f.sample("_sum", time.Duration(h.sum.Load()).Seconds(), labels)
	f.sample("_count", float64(below), labels)
}

// histogram counts durations. It is safe for concurrent use.
type histogram struct {
	bounds []time.Duration // ascending
	counts []atomic.Int64  // one more than there are bounds
	sum    atomic.Int64    // nanoseconds
}

func newHistogram(bounds []time.Duration) *histogram {
	return &histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

func (h *histogram) observe(d time.Duration) {
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// seconds converts bucket bounds.
func seconds(list ...float64) (out []time.Duration) {
	for _, s := range list {
		out = append(out, time.Duration(s*float64(time.Second)))
	}
	return out
}
