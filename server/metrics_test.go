package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

// reporting is a parrot with a usage report.
type reporting struct{ *servertest.Parrot }

func (reporting) Usage(context.Context) (runtime.Usage, error) {
	return runtime.Usage{Weights: 1000, State: 200, StateLimit: 300, Running: 2, Waiting: 7, Steps: 40, Shares: 60,
		Prefix: &prefix.Stats{Bytes: 50, Budget: 90, Lookups: 5, Hits: 4, Keys: 30, Cached: 20, Evicted: 1}}, nil
}

func TestMetrics(t *testing.T) {
	f := serve(t, func(o *server.Options) {
		load := o.Load
		o.Load = func(ctx context.Context, c server.Child, loaded func(float64)) (pool.Model, error) {
			m, err := load(ctx, c, loaded)
			return reporting{m.(*servertest.Parrot)}, err
		}
	})
	f.Says = []string{"a", "b", "c"}
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"Once","stream":false}`, 200)
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"Once"}`, 200)
	f.Has(t, "POST", "/api/generate", `{"model":"none","prompt":"Once"}`, 404)
	f.Has(t, "GET", "/api/generate", "", 405)
	f.Has(t, "GET", "/nothing/at/all", "", 404)
	f.Has(t, "GET", "/", "", 200)
	f.Ask(t, "GET", "/api/version", "", "Host", "evil.example")
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","options":{"num_predict":13}}`, 500) // a panic

	got := f.Measured(t)
	servertest.Expect(t, got, map[string]float64{
		`ingot_info{version="1.2.3"}`:                                              1,
		`ingot_requests_open`:                                                      1,
		`ingot_requests_total{endpoint="/api/generate",status="200"}`:              2,
		`ingot_requests_total{endpoint="/api/generate",status="404"}`:              1,
		`ingot_requests_total{endpoint="/api/generate",status="405"}`:              1,
		`ingot_requests_total{endpoint="/api/generate",status="500"}`:              1,
		`ingot_requests_total{endpoint="none",status="404"}`:                       1,
		`ingot_requests_total{endpoint="/",status="200"}`:                          1,
		`ingot_requests_total{endpoint="/api/version",status="403"}`:               1,
		`ingot_answers_total{model="plain:latest",end="stop"}`:                     2,
		`ingot_answers_total{model="plain:latest",end="error"}`:                    1,
		`ingot_prompt_tokens_total{model="plain:latest"}`:                          4,
		`ingot_generated_tokens_total{model="plain:latest"}`:                       6,
		`ingot_time_to_first_token_seconds_count{model="plain:latest"}`:            2,
		`ingot_time_to_first_token_seconds_bucket{model="plain:latest",le="+Inf"}`: 2,
		`ingot_inter_token_seconds_count{model="plain:latest"}`:                    4,
		`ingot_model_load_seconds_count{model="plain:latest"}`:                     1,
		`ingot_memory_limit_bytes`:                                                 8 << 30,
		`ingot_model_loaded{model="plain:latest"}`:                                 1,
		`ingot_model_requests{model="plain:latest"}`:                               0,
		`ingot_batch_requests{model="plain:latest"}`:                               2,
		`ingot_queue_requests{model="plain:latest"}`:                               7,
		`ingot_steps_total{model="plain:latest"}`:                                  40,
		`ingot_step_requests_total{model="plain:latest"}`:                          60,
		`ingot_model_memory_bytes{model="plain:latest",of="weights"}`:              1000,
		`ingot_model_memory_bytes{model="plain:latest",of="state"}`:                200,
		`ingot_model_memory_bytes{model="plain:latest",of="prefix_cache"}`:         50,
		`ingot_state_limit_bytes{model="plain:latest"}`:                            300,
		`ingot_prefix_lookups_total{model="plain:latest"}`:                         5,
		`ingot_prefix_hits_total{model="plain:latest"}`:                            4,
		`ingot_prefix_cached_tokens_total{model="plain:latest"}`:                   20,
	})
	if got["ingot_server_memory_bytes"] < 1<<20 || got[`ingot_model_room_bytes{model="plain:latest"}`] < 1<<20 {
		t.Errorf("memory: %v, %v", got["ingot_server_memory_bytes"], got[`ingot_model_room_bytes{model="plain:latest"}`])
	}
	if _, there := got[`ingot_cache_disk_bytes{model="plain:latest"}`]; there {
		t.Error("ingot_cache_disk_bytes is reported without a disk cache")
	}
}

// A client that disconnects is not counted as a server error.
func TestMetricsDisconnect(t *testing.T) {
	f := serve(t, nil)
	f.Wait = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", f.URL+"/api/generate",
		strings.NewReader(`{"model":"plain","prompt":"x","stream":false}`))
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(r); err == nil {
			response.Body.Close()
			t.Error("got a response")
		}
	}()
	until(t, func() bool { return f.Measured(t)[`ingot_generated_tokens_total{model="plain:latest"}`] == 1 })
	cancel()
	<-gone
	until(t, func() bool {
		got := f.Measured(t)
		return got[`ingot_answers_total{model="plain:latest",end="cancelled"}`] == 1 &&
			got[`ingot_requests_total{endpoint="/api/generate",status="499"}`] == 1
	})
}

// until waits until a condition is true.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timeout: the condition is still false")
		}
	}
}

func TestMetricsNeedKey(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.APIKey = "secret" })
	f.Has(t, "GET", "/metrics", "", 401)
	if status, text := f.Ask(t, "GET", "/metrics", "", "Authorization", "Bearer secret"); status != 200 ||
		servertest.Samples(t, text)[`ingot_requests_total{endpoint="/metrics",status="401"}`] != 1 {
		t.Errorf("%d: %s", status, text)
	}
}
