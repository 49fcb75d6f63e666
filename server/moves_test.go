package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/opencontainers/go-digest"
)

func name(t *testing.T, text string) manifest.Name {
	t.Helper()
	n, err := manifest.ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// digestOf returns the image of a name.
func digestOf(t *testing.T, s *store.Store, text string) digest.Digest {
	t.Helper()
	_, d, err := s.Locate(t.Context(), name(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func move(t *testing.T, s *store.Store, from, to string) {
	t.Helper()
	if _, err := s.Copy(t.Context(), name(t, from), name(t, to), ""); err != nil {
		t.Error(err)
	}
}

// pruned removes what nothing uses. Others may write to the store meanwhile.
func pruned(t *testing.T, s *store.Store) {
	t.Helper()
	if _, err := collect.Prune(t.Context(), s, collect.PruneOptions{}); err != nil && !errors.Is(err, manifest.ErrBusy) {
		t.Error(err)
	}
}

// requests are requests with a model in each API, and what a response says if the store does not have it.
var requests = []struct{ path, body, missing string }{
	{"/api/generate", `{"model":"%s","prompt":"x","stream":false}`, `{"error":"model 'gone' not found"`},
	{"/api/chat", `{"model":"%s","messages":[{"role":"user","content":"x"}]}`, `{"error":"model 'gone' not found"`},
	{"/api/show", `{"model":"%s"}`, `{"error":"model 'gone' not found"`},
	{"/api/embed", `{"model":"%s","input":"x"}`, `{"error":"model \"gone\" not found`},
	{"/v1/chat/completions", `{"model":"%s","messages":[{"role":"user","content":"x"}]}`, `"code":"model_not_found"`},
	{"/v1/completions", `{"model":"%s","prompt":"x","stream":true}`, `"code":"model_not_found"`},
	{"/v1/responses", `{"model":"%s","input":"x"}`, `"code":"model_not_found"`},
	{"/v1/messages", `{"model":"%s","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, `"not_found_error"`},
}

// A request goes on with the image that its name stood for, though the name is moved and removed and a collection runs
// before the model is loaded. The image stays until the request has ended.
func TestMovedWhileLoading(t *testing.T) {
	for _, q := range requests {
		if q.path == "/api/show" || q.path == "/api/embed" {
			continue // the models embed nothing, and showing one loads nothing
		}
		t.Run(q.path, func(t *testing.T) {
			loading, loads := make(chan string), make(chan struct{})
			f := serve(t, func(o *server.Options) {
				load := o.Load
				o.Load = func(ctx context.Context, c server.Child, part func(float64)) (pool.Model, error) {
					loading <- c.Name
					<-loads
					return load(ctx, c, part)
				}
			})
			s := f.Options().Store
			move(t, s, "talk", "prod")
			old := digestOf(t, s, "prod")
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				f.Has(t, "POST", q.path, fmt.Sprintf(q.body, "prod"), http.StatusOK)
			}()
			if got := <-loading; got != "prod:latest@"+old.String() {
				t.Errorf("%s is loaded", got)
			}
			move(t, s, "plain", "prod")
			for _, n := range []string{"talk", "prod"} {
				if err := collect.Remove(t.Context(), s, name(t, n)); err != nil {
					t.Error(err)
				}
			}
			pruned(t, s)
			entry, err := s.ReadEntry(name(t, "prod"), old)
			if err != nil {
				t.Fatalf("the image of the request is gone: %v", err)
			}
			if err := s.CheckPresent(entry, true); err != nil {
				t.Errorf("the image of the request is incomplete: %v", err)
			}
			close(loads)
			<-ended
			pruned(t, s)
			if _, err := s.ReadEntry(name(t, "prod"), old); !errors.Is(err, manifest.ErrBlobMissing) {
				t.Errorf("the image stays after the request: %v", err)
			}
			f.Has(t, "POST", q.path, fmt.Sprintf(q.body, "gone"), http.StatusNotFound, q.missing)
		})
	}
}

// Names are moved, removed and collected while clients of two servers use them. A request gets a response, or hears
// that there is no such model.
func TestMovesUnderLoad(t *testing.T) {
	a := serveMute(t, nil)
	b := serveMute(t, func(o *server.Options) { o.Store = a.Options().Store })
	s := a.Options().Store
	store.Waits(20*time.Millisecond, time.Minute)(s) // of collections, for the images that are created beside them
	move(t, s, "talk", "prod")
	move(t, s, "talk", "gone")
	var clients, moves sync.WaitGroup
	stop := make(chan struct{})
	for _, f := range []*fixture{a, b} {
		for _, q := range requests {
			for _, model := range []string{"prod", "gone"} {
				clients.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						status, text := f.Ask(t, http.MethodPost, q.path, fmt.Sprintf(q.body, model))
						notFound := status == http.StatusNotFound && model == "gone" && strings.Contains(text, q.missing)
						noVectors := status == http.StatusBadRequest && q.path == "/api/embed"
						if status != http.StatusOK && !notFound && !noVectors {
							t.Errorf("%s with %s: %d %s", q.path, model, status, text)
						}
					}
				})
			}
		}
	}
	moves.Go(func() {
		for i := range 12 {
			move(t, s, []string{"plain", "talk"}[i%2], "prod")
			_ = collect.Remove(t.Context(), s, name(t, "gone"))
			move(t, s, []string{"talk", "plain"}[i%2], "gone")
		}
	})
	moves.Go(func() {
		for i := range 4 {
			// An image of its own becomes garbage each time.
			status, text := a.Ask(t, http.MethodPost, "/api/create",
				fmt.Sprintf(`{"model":"prod","from":"talk","system":"%d","stream":false}`, i))
			if status != http.StatusOK {
				t.Error(status, text)
			}
			pruned(t, s)
		}
	})
	moves.Wait()
	close(stop)
	clients.Wait()
}
