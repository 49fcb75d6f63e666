package server

import (
	"context"
	"maps"
	"net/http"
	gometrics "runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// measure is GET /metrics.
func (s *Server) measure(w http.ResponseWriter, r *http.Request) error {
	var e exposition
	e.family("ingot_info", gaugeKind, "The program; always 1.").add(1, "version", s.opts.Version)
	s.metrics.expose(&e)
	s.exposeModels(r.Context(), &e)
	w.Header().Set("Content-Type", metricsType)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(e.Bytes()) // an error means that the client left
	return nil
}

// expose writes what was counted.
func (m *metrics) expose(e *exposition) {
	m.mu.Lock()
	requests, models := maps.Clone(m.requests), maps.Clone(m.models)
	m.mu.Unlock()

	e.family("ingot_requests_open", gaugeKind, "Requests that are being answered, this one among them.").add(float64(m.open.Load()))
	f := e.family("ingot_requests_total", counterKind, "Requests by what they asked for and the status of the answer; 499: the client left before it began.")
	for _, k := range slices.SortedFunc(maps.Keys(requests), func(a, b asked) int {
		if c := strings.Compare(a.endpoint, b.endpoint); c != 0 {
			return c
		}
		return a.status - b.status
	}) {
		f.add(float64(requests[k]), "endpoint", k.endpoint, "status", strconv.Itoa(k.status))
	}
	names := slices.Sorted(maps.Keys(models))
	f = e.family("ingot_answers_total", counterKind, "Answers of models by how they ended.")
	for _, name := range names {
		for i, end := range ends {
			f.add(float64(models[name].ends[i].Load()), "model", name, "end", end)
		}
	}
	for _, c := range []struct {
		name, help string
		of         func(*modelMetrics) *atomic.Int64
	}{
		{"ingot_prompt_tokens_total", "Tokens of prompts, those that were found in the prefix cache included.", func(m *modelMetrics) *atomic.Int64 { return &m.prompt }},
		{"ingot_cached_prompt_tokens_total", "Tokens of prompts that were found in the prefix cache.", func(m *modelMetrics) *atomic.Int64 { return &m.cached }},
		{"ingot_generated_tokens_total", "Tokens that models said.", func(m *modelMetrics) *atomic.Int64 { return &m.tokens }},
		{"ingot_drafted_tokens_total", "Tokens that were drafted and judged.", func(m *modelMetrics) *atomic.Int64 { return &m.drafted }},
		{"ingot_accepted_tokens_total", "Drafted tokens that the model would have said.", func(m *modelMetrics) *atomic.Int64 { return &m.accepted }},
		{"ingot_target_steps_total", "Forwards that chose tokens of an answer, one or with drafts several.", func(m *modelMetrics) *atomic.Int64 { return &m.targets }},
	} {
		f := e.family(c.name, counterKind, c.help)
		for _, name := range names {
			f.add(float64(c.of(models[name]).Load()), "model", name)
		}
	}
	for _, h := range []struct {
		name, help string
		of         func(*modelMetrics) *histogram
	}{
		{"ingot_time_to_first_token_seconds", "From a request to the first token of its answer; where the model had to be loaded, with that.", func(m *modelMetrics) *histogram { return m.first }},
		{"ingot_inter_token_seconds", "From a token of an answer to the next one.", func(m *modelMetrics) *histogram { return m.next }},
		{"ingot_model_load_seconds", "How long it took to load models.", func(m *modelMetrics) *histogram { return m.load }},
	} {
		f := e.family(h.name, histogramKind, h.help)
		for _, name := range names {
			f.histogram(h.of(models[name]), "model", name)
		}
	}
}

// metricsPatience is how long the processes of models may take to tell how they do, less than a scrape waits.
const metricsPatience = 3 * time.Second

// exposeModels writes how the models that are loaded do. What a busy one does not tell in time is left out.
func (s *Server) exposeModels(ctx context.Context, e *exposition) {
	e.family("ingot_memory_limit_bytes", gaugeKind, "Memory that all models may take.").add(float64(s.opts.Memory))
	e.family("ingot_server_memory_bytes", gaugeKind, "Memory that the server itself has, without the processes of models.").add(float64(ownMemory()))

	list := s.pool.List()
	usages := make([]*runtime.Usage, len(list))
	ctx, cancel := context.WithTimeout(ctx, metricsPatience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() { usages[i] = usage(ctx, list[i].Model) })
	}
	wg.Wait()

	all := func(name, help string, value func(i int) float64) {
		f := e.family(name, gaugeKind, help)
		for i := range list {
			f.add(value(i), "model", list[i].Name)
		}
	}
	all("ingot_model_loaded", "How far a model has loaded; 1: it is ready.", func(i int) float64 { return list[i].Loaded })
	all("ingot_model_room_bytes", "Memory that a model counts with.", func(i int) float64 { return float64(list[i].Size) })
	all("ingot_model_requests", "Requests that have a model or wait for it to load.", func(i int) float64 { return float64(list[i].Leases) })

	for _, m := range usageMetrics {
		f := e.family(m.name, m.kind, m.help)
		for i, u := range usages {
			if u != nil {
				m.each(u, func(value int64, labels ...string) {
					f.add(float64(value), append([]string{"model", list[i].Name}, labels...)...)
				})
			}
		}
	}
}

// usageMetric is one of what a model's process tells.
type usageMetric struct {
	name, kind, help string
	each             func(u *runtime.Usage, add addValue)
}

type addValue func(value int64, labels ...string)

// usageMetrics are what a model's process tells, since it was started.
var usageMetrics = []usageMetric{
	{"ingot_batch_requests", gaugeKind, "Requests that run together in a model.", func(u *runtime.Usage, add addValue) { add(int64(u.Running)) }},
	{"ingot_queue_requests", gaugeKind, "Requests that wait in a model for those that run.", func(u *runtime.Usage, add addValue) { add(int64(u.Waiting)) }},
	{"ingot_steps_total", counterKind, "Steps of a model.", func(u *runtime.Usage, add addValue) { add(u.Steps) }},
	{"ingot_step_requests_total", counterKind, "Requests in those steps: by the steps, the mean size of a batch.", func(u *runtime.Usage, add addValue) { add(u.Shares) }},
	{"ingot_model_memory_bytes", gaugeKind, "Memory of a model by what has it.", func(u *runtime.Usage, add addValue) {
		add(u.Weights, "of", "weights")
		add(u.State, "of", "state")
		if u.Prefix != nil {
			add(u.Prefix.Bytes, "of", "prefix_cache")
		}
	}},
	{"ingot_state_limit_bytes", gaugeKind, "Memory that the state of running requests may take.", func(u *runtime.Usage, add addValue) {
		if u.StateLimit > 0 {
			add(u.StateLimit)
		}
	}},
	ofPrefix("ingot_prefix_limit_bytes", gaugeKind, "Memory that state of past requests may take.", func(u *runtime.Usage) int64 { return u.Prefix.Budget }),
	ofPrefix("ingot_prefix_lookups_total", counterKind, "Prompts that were looked up in the prefix cache.", func(u *runtime.Usage) int64 { return u.Prefix.Lookups }),
	ofPrefix("ingot_prefix_hits_total", counterKind, "Of these, prompts of which something was found.", func(u *runtime.Usage) int64 { return u.Prefix.Hits }),
	ofPrefix("ingot_prefix_tokens_total", counterKind, "Tokens of the prompts that were looked up.", func(u *runtime.Usage) int64 { return u.Prefix.Keys }),
	ofPrefix("ingot_prefix_cached_tokens_total", counterKind, "Of these, tokens that were found.", func(u *runtime.Usage) int64 { return u.Prefix.Cached }),
	ofPrefix("ingot_prefix_evicted_total", counterKind, "Pieces of past requests' state that had to go.", func(u *runtime.Usage) int64 { return u.Prefix.Evicted }),
	{"ingot_cache_disk_bytes", gaugeKind, "Files of past requests' state.", func(u *runtime.Usage, add addValue) {
		if u.Disk != nil {
			add(u.Disk.Bytes)
		}
	}},
}

// ofPrefix is a metric of models that keep state of past requests.
func ofPrefix(name, kind, help string, value func(u *runtime.Usage) int64) usageMetric {
	return usageMetric{name, kind, help, func(u *runtime.Usage, add addValue) {
		if u.Prefix != nil {
			add(value(u))
		}
	}}
}

// ownMemory is what this process has of the system, as far as its own runtime knows.
func ownMemory() int64 {
	s := []gometrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	gometrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
