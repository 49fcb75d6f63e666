package server_test

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/batches"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/servertest"
)

// generations are a request to each endpoint that generates.
var generations = [][2]string{
	{"/api/generate", `{"model":"talk","prompt":"Hi","stream":false}`},
	{"/api/chat", `{"model":"talk","stream":false,"messages":[{"role":"user","content":"Hi"}]}`},
	{"/v1/completions", `{"model":"plain","prompt":"Hi","n":2}`},
	{"/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"Hi"}]}`},
	{"/v1/responses", `{"model":"talk","input":"Hi"}`},
	{"/v1/responses/compact", `{"model":"talk","input":"Hi"}`},
	{"/v1/messages", `{"model":"talk","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`},
}

// shared is a parrot for all models, whose requests a test reads.
func shared(p *servertest.Parrot) func(*server.Options) {
	return func(o *server.Options) {
		o.Load = func(ctx context.Context, _ server.Child, _ func(float64)) (pool.Model, error) { return p, nil }
	}
}

// owners returns the owners of the requests that a parrot got since the last call.
func owners(p *servertest.Parrot) []string {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	all := map[string]bool{}
	for _, r := range p.Requests {
		all[r.Owner] = true
	}
	p.Requests = nil
	return slices.Sorted(maps.Keys(all))
}

// A request's owner is that of its key, in all APIs, and also for what runs when the request has ended. With
// ShareCache, and without keys, all have one.
func TestOwnersOfRequests(t *testing.T) {
	for _, share := range []bool{false, true} {
		p := servertest.NewParrot("Hello")
		f := serve(t, func(o *server.Options) {
			withKeys(t, "alice ka\nbob kb\nkc\n", io.Discard)(o)
			shared(p)(o)
			o.ShareCache = share
		})
		seen := map[string]string{}
		check := func(what, key string) {
			t.Helper()
			got := owners(p)
			want := map[bool]string{false: map[string]string{"ka": "alice", "kb": "bob"}[key], true: ""}[share]
			if len(got) != 1 || want != "" && got[0] != want || share && got[0] != "" {
				t.Fatalf("%s with %s, shared %v: owners %q, want %q", what, key, share, got, want)
			}
			if before, there := seen[key]; there && got[0] != before {
				t.Errorf("%s: the owner was %q and is %q", what, before, got[0])
			}
			seen[key] = got[0]
		}
		for _, key := range []string{"ka", "kb", "kc"} {
			for _, g := range generations {
				if response, text := f.send(t, g[0], g[1], key); response.StatusCode != 200 {
					t.Fatalf("%s: %d %s", g[0], response.StatusCode, text)
				}
				check(g[0], key)
			}
			_, text := f.send(t, "/v1/responses", `{"model":"talk","input":"Hi","background":true}`, key)
			for deadline := time.Now().Add(20 * time.Second); strings.Contains(text, `"in_progress"`) ||
				strings.Contains(text, `"queued"`); time.Sleep(time.Millisecond) {
				id := servertest.Decode[struct{ ID string }](t, text).ID
				_, text = f.Ask(t, "GET", "/v1/responses/"+id, "", "X-Api-Key", key)
				if time.Now().After(deadline) {
					t.Fatal(text)
				}
			}
			check("in the background", key)
		}
		if !share && len(seen) != len(slices.Compact(slices.Sorted(maps.Values(seen)))) {
			t.Errorf("two keys have one owner: %q", seen)
		}
		for owner, key := range map[string]string{"alice": "ka", "gone": "kd"} {
			q := batches.Request{URL: generations[3][0], Body: []byte(generations[3][1])}
			if r, err := f.Do(t.Context(), owner, q); err != nil || r.Status != 200 {
				t.Fatalf("%+v, %v", r, err)
			}
			if got, want := owners(p), map[bool]string{false: owner}[share]; len(got) != 1 || got[0] != want {
				t.Errorf("a batch of %s (%s): owners %q, want %q", owner, key, got, want)
			}
		}
	}
	p := servertest.NewParrot("Hello")
	f := serve(t, shared(p))
	for _, g := range generations {
		f.Has(t, "POST", g[0], g[1], 200)
	}
	if got := owners(p); len(got) != 1 || got[0] != "" {
		t.Errorf("without keys: owners %q", got)
	}
}

// A response that one key has stored is unknown to all others, in whatever order the file has them later.
func TestResponsesOfChangedKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first-key\nsecond-key\n")
	f := serve(t, func(o *server.Options) {
		var err error
		if o.Keys, err = keys.Open(path, t.Logf); err != nil {
			t.Fatal(err)
		}
	})
	_, text := f.send(t, "/v1/responses", `{"model":"talk","input":"Hi","store":true}`, "first-key")
	id := servertest.Decode[struct{ ID string }](t, text).ID
	get := func(key string) int {
		status, _ := f.Ask(t, "GET", "/v1/responses/"+id, "", "X-Api-Key", key)
		return status
	}
	if mine, other := get("first-key"), get("second-key"); mine != 200 || other != 404 {
		t.Errorf("its key: %d, another one: %d", mine, other)
	}
	write("second-key\n") // now the first one of the file
	for deadline := time.Now().Add(20 * time.Second); get("first-key") != 401; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the file was not read again")
		}
	}
	if other := get("second-key"); other != 404 {
		t.Errorf("the key that took the place: %d", other)
	}
}

// Where the file says which key reads the metrics, another one learns nothing of what others use.
func TestMetricsOfOneKey(t *testing.T) {
	f := serve(t, withKeys(t, "alice ka\nwatch kw metrics=1\n", io.Discard))
	f.send(t, generations[0][0], generations[0][1], "ka")
	for key, want := range map[string]int{"ka": 403, "kw": 200} {
		if status, text := f.Ask(t, "GET", "/metrics", "", "X-Api-Key", key); status != want {
			t.Errorf("%s: %d %s, want %d", key, status, text, want)
		}
		status, text := f.Ask(t, "GET", "/api/ps?verbose=true", "", "X-Api-Key", key)
		if status != 200 || strings.Contains(text, `"memory":`) != (want == 200) {
			t.Errorf("%s: ps: %d %s", key, status, text)
		}
	}
}
