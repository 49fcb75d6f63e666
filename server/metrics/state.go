package metrics

import (
	"maps"
	goruntime "runtime"
	gometrics "runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/keys"
)

// ModelState is the state of a model that is loaded or being loaded.
type ModelState struct {
	Name   string
	Loaded float64        // progress of loading; 1: ready
	Room   int64          // bytes of memory reserved for it
	Leases int            // requests that use it or wait for it to load
	Usage  *runtime.Usage // nil: unknown
}

// State is what the exposition shows beside the counters.
type State struct {
	Version string
	Memory  int64 // memory limit of all models together, in bytes
	Models  []ModelState
	Keys    []keys.State
}

// Text returns all metrics in Prometheus' text format.
func (m *Metrics) Text(s State) []byte {
	var e exposition
	e.family("ingot_info", gaugeKind, "The program's version; always 1.").add(1, "version", s.Version)
	m.expose(&e)
	s.expose(&e)
	return e.Bytes()
}

// expose writes the counters.
func (m *Metrics) expose(e *exposition) {
	m.mu.Lock()
	requests, models := maps.Clone(m.requests), maps.Clone(m.models)
	m.mu.Unlock()

	e.family("ingot_requests_open", gaugeKind, "HTTP requests in progress, including this one.").
		add(float64(m.open.Load()))
	f := e.family("ingot_requests_total", counterKind,
		"HTTP requests by endpoint and status; 499: the client disconnected before the response started.")
	for _, k := range slices.SortedFunc(maps.Keys(requests), func(a, b requestKey) int {
		if c := strings.Compare(a.endpoint, b.endpoint); c != 0 {
			return c
		}
		return a.status - b.status
	}) {
		f.add(float64(requests[k]), "endpoint", k.endpoint, "status", strconv.Itoa(k.status))
	}
	names := slices.Sorted(maps.Keys(models))
	f = e.family("ingot_answers_total", counterKind, "Model responses by how they ended.")
	for _, name := range names {
		for i, end := range ends {
			f.add(float64(models[name].ends[i].Load()), "model", name, "end", end)
		}
	}
	for _, c := range []struct {
		name, help string
		of         func(*modelMetrics) *atomic.Int64
	}{
		{"ingot_prompt_tokens_total", "Prompt tokens, including those found in the prefix cache.",
			func(m *modelMetrics) *atomic.Int64 { return &m.prompt }},
		{"ingot_cached_prompt_tokens_total", "Prompt tokens found in the prefix cache.",
			func(m *modelMetrics) *atomic.Int64 { return &m.cached }},
		{"ingot_generated_tokens_total", "Generated tokens.",
			func(m *modelMetrics) *atomic.Int64 { return &m.tokens }},
		{"ingot_drafted_tokens_total", "Drafted tokens that the target verified.",
			func(m *modelMetrics) *atomic.Int64 { return &m.drafted }},
		{"ingot_accepted_tokens_total", "Drafted tokens that the target accepted.",
			func(m *modelMetrics) *atomic.Int64 { return &m.accepted }},
		{"ingot_target_steps_total", "Forward passes that generated tokens; with drafts, several tokens per pass.",
			func(m *modelMetrics) *atomic.Int64 { return &m.targets }},
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
		{"ingot_time_to_first_token_seconds", "Time from the request to the first token, including loading the model.",
			func(m *modelMetrics) *histogram { return m.first }},
		{"ingot_inter_token_seconds", "Time between two tokens of a response.",
			func(m *modelMetrics) *histogram { return m.next }},
		{"ingot_model_load_seconds", "Time to load a model.",
			func(m *modelMetrics) *histogram { return m.load }},
	} {
		f := e.family(h.name, histogramKind, h.help)
		for _, name := range names {
			f.histogram(h.of(models[name]), "model", name)
		}
	}
}

// expose writes the state of the server and of loaded models. It omits usage that is unknown.
func (s State) expose(e *exposition) {
	e.family("ingot_memory_limit_bytes", gaugeKind, "Memory limit of all models together.").add(float64(s.Memory))
	e.family("ingot_server_memory_bytes", gaugeKind, "Memory of the server process, without the models' processes.").
		add(float64(ownMemory()))
	e.family("ingot_server_goroutines", gaugeKind, "Goroutines of the server process.").
		add(float64(goruntime.NumGoroutine()))

	all := func(name, help string, value func(m ModelState) float64) {
		f := e.family(name, gaugeKind, help)
		for _, m := range s.Models {
			f.add(value(m), "model", m.Name)
		}
	}
	all("ingot_model_loaded", "Progress of loading a model; 1: ready.", func(m ModelState) float64 { return m.Loaded })
	all("ingot_model_room_bytes", "Memory reserved for a model.", func(m ModelState) float64 { return float64(m.Room) })
	all("ingot_model_requests", "Requests that use a model or wait for it to load.",
		func(m ModelState) float64 { return float64(m.Leases) })

	s.exposeKeys(e)
	for _, metric := range usageMetrics {
		f := e.family(metric.name, metric.kind, metric.help)
		for _, m := range s.Models {
			if m.Usage != nil {
				metric.each(m.Usage, func(value int64, labels ...string) {
					f.add(float64(value), append([]string{"model", m.Name}, labels...)...)
				})
			}
		}
	}
}

// exposeKeys writes what API keys have used. A server without keys has no such metrics.
func (s State) exposeKeys(e *exposition) {
	if len(s.Keys) == 0 {
		return
	}
	f := e.family("ingot_key_requests_total", counterKind, "HTTP requests by API key and status.")
	for _, k := range s.Keys {
		for _, status := range slices.Sorted(maps.Keys(k.Requests)) {
			f.add(float64(k.Requests[status]), "key", k.Name, "status", strconv.Itoa(status))
		}
	}
	f = e.family("ingot_key_requests_open", gaugeKind, "Requests of an API key that run.")
	for _, k := range s.Keys {
		f.add(float64(k.Running), "key", k.Name)
	}
	f = e.family("ingot_key_tokens_total", counterKind,
		"Tokens that were computed for an API key: of prompts, without those found in the prefix cache, and generated.")
	for _, k := range s.Keys {
		f.add(float64(k.Prompt), "key", k.Name, "of", "prompt")
		f.add(float64(k.Generated), "key", k.Name, "of", "generated")
	}
}

// usageMetric is a metric from the usage report of a model's process.
type usageMetric struct {
	name, kind, help string
	each             func(u *runtime.Usage, add addValue)
}

type addValue func(value int64, labels ...string)

// usageMetrics are the metrics from usage reports. Counters start at 0 with each process.
var usageMetrics = []usageMetric{
	{"ingot_batch_requests", gaugeKind, "Running requests: the current batch size.",
		func(u *runtime.Usage, add addValue) { add(int64(u.Running)) }},
	{"ingot_queue_requests", gaugeKind, "Requests waiting for a slot in the batch.",
		func(u *runtime.Usage, add addValue) { add(int64(u.Waiting)) }},
	{"ingot_steps_total", counterKind, "Steps (forward passes of the batch).",
		func(u *runtime.Usage, add addValue) { add(u.Steps) }},
	{"ingot_step_requests_total", counterKind, "Sum of the batch sizes of all steps; divide by steps for the mean.",
		func(u *runtime.Usage, add addValue) { add(u.Shares) }},
	{"ingot_model_goroutines", gaugeKind, "Goroutines of a model's process.",
		func(u *runtime.Usage, add addValue) { add(int64(u.Goroutines)) }},
	{"ingot_model_memory_bytes", gaugeKind, "Memory of a model, by use.", func(u *runtime.Usage, add addValue) {
		add(u.Weights, "of", "weights")
		add(u.State, "of", "state")
		if u.Prefix != nil {
			add(u.Prefix.Bytes, "of", "prefix_cache")
		}
	}},
	{"ingot_state_limit_bytes", gaugeKind, "Memory limit of the KV caches of running requests.",
		func(u *runtime.Usage, add addValue) {
			if u.StateLimit > 0 {
				add(u.StateLimit)
			}
		}},
	prefixMetric("ingot_prefix_limit_bytes", gaugeKind, "Memory limit of the prefix cache.",
		func(u *runtime.Usage) int64 { return u.Prefix.Budget }),
	prefixMetric("ingot_prefix_lookups_total", counterKind, "Prompts looked up in the prefix cache.",
		func(u *runtime.Usage) int64 { return u.Prefix.Lookups }),
	prefixMetric("ingot_prefix_hits_total", counterKind, "Prompts of which a prefix was found.",
		func(u *runtime.Usage) int64 { return u.Prefix.Hits }),
	prefixMetric("ingot_prefix_tokens_total", counterKind, "Tokens of the prompts that were looked up.",
		func(u *runtime.Usage) int64 { return u.Prefix.Keys }),
	prefixMetric("ingot_prefix_cached_tokens_total", counterKind, "Tokens found in the prefix cache.",
		func(u *runtime.Usage) int64 { return u.Prefix.Cached }),
	prefixMetric("ingot_prefix_evicted_total", counterKind, "Entries evicted from the prefix cache.",
		func(u *runtime.Usage) int64 { return u.Prefix.Evicted }),
	{"ingot_rank_weights_bytes", gaugeKind, "Weights of each rank of a divided model.",
		func(u *runtime.Usage, add addValue) {
			for _, r := range u.Ranks {
				add(r.Weights, "rank", strconv.Itoa(r.Rank))
			}
		}},
	{"ingot_rank_commands_bytes_total", counterKind, "Bytes of commands that rank 0 has sent to another rank.",
		func(u *runtime.Usage, add addValue) {
			for _, r := range u.Ranks[min(1, len(u.Ranks)):] {
				add(r.Commands, "rank", strconv.Itoa(r.Rank))
			}
		}},
	{"ingot_ring_bytes_total", counterKind, "Bytes that rank 0 has sent to other ranks and received from them.",
		func(u *runtime.Usage, add addValue) {
			if u.Ring != nil {
				add(u.Ring.Sent, "way", "sent")
				add(u.Ring.Received, "way", "received")
			}
		}},
	{"ingot_cache_disk_bytes", gaugeKind, "Size of the prefix cache on disk.", func(u *runtime.Usage, add addValue) {
		if u.Disk != nil {
			add(u.Disk.Bytes)
		}
	}},
}

// prefixMetric returns a metric of models with a prefix cache.
func prefixMetric(name, kind, help string, value func(u *runtime.Usage) int64) usageMetric {
	return usageMetric{name, kind, help, func(u *runtime.Usage, add addValue) {
		if u.Prefix != nil {
			add(value(u))
		}
	}}
}

// ownMemory returns the memory that this process holds, as far as the Go runtime knows.
func ownMemory() int64 {
	s := []gometrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	gometrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
