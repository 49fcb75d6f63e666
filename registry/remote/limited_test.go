package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rt "github.com/ingotml/ingot/registry/registrytest"
)

// limiting is a registry with a token server that limits requests to one of the two. It hears from clients that do not
// wait in real time.
type limiting struct {
	*httptest.Server
	mu     sync.Mutex
	where  string // a part of the path
	times  int
	status int
	body   string
	header []string
}

func newLimiting(t *testing.T) *limiting {
	l := &limiting{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		l.mu.Lock()
		limited := l.times != 0 && strings.Contains(req.URL.Path, l.where)
		if limited {
			l.times--
		}
		l.mu.Unlock()
		switch {
		case limited:
			for i := 0; i < len(l.header); i += 2 {
				w.Header().Set(l.header[i], l.header[i+1])
			}
			w.WriteHeader(l.status)
			fmt.Fprint(w, l.body)
		case req.URL.Path == "/token":
			fmt.Fprint(w, `{"token":"t"}`)
		case req.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+req.Host+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fmt.Fprint(w, rt.SmallManifest(""))
		}
	}))
	t.Cleanup(l.Close)
	return l
}

// TestLimits: limits of a registry and of its token server are waited out, told once, and bounded.
func TestLimits(t *testing.T) {
	const code = `{"errors":[{"code":"TOOMANYREQUESTS","message":"throttled"}]}`
	for _, c := range []struct {
		what    string
		where   string
		times   int
		status  int
		body    string
		header  []string
		paused  []time.Duration // nil: not compared
		atLeast time.Duration   // waited in all
		fails   bool
	}{
		{"a registry, for 40 s", "/manifests/", 1, 429, "", []string{"Retry-After", "40"}, []time.Duration{40 * time.Second},
			40 * time.Second, false},
		{"a token server, for 40 s", "/token", 1, 429, "", []string{"Retry-After", "40"},
			[]time.Duration{40 * time.Second}, 40 * time.Second, false},
		{"a token server, without a hint", "/token", 4, 429, "", nil,
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, 15 * time.Second, false},
		{"the ping", "/v2/", 3, 429, "", nil, nil, 7 * time.Second, false},
		{"more often than there are attempts", "/manifests/", 9, 429, "", nil, nil, 4 * time.Minute, false},
		{"by the code", "/manifests/", 3, 503, code, nil, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
			7 * time.Second, false},
		{"by the code of a 403", "/manifests/", 1, 403, code, []string{"Retry-After", "40"},
			[]time.Duration{40 * time.Second}, 40 * time.Second, false},
		{"by the hub's header", "/manifests/", 1, 429, "", []string{"RateLimit", `"api";r=0;t=55`},
			[]time.Duration{56 * time.Second}, 56 * time.Second, false},
		{"milliseconds", "/manifests/", 1, 429, "", []string{"Retry-After", "9500"}, nil, 9 * time.Second, false},
		{"for ever", "/manifests/", -1, 429, "", nil, nil, 10 * time.Minute, true},
		{"for ever by the code", "/manifests/", -1, 403, code, nil, nil, 10 * time.Minute, true},
		{"a token server for ever", "/token", -1, 429, "", nil, nil, 10 * time.Minute, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := newLimiting(t)
			l.where, l.times, l.status, l.body, l.header = c.where, c.times, c.status, c.body, c.header
			var paused []time.Duration
			client := authClient(t, Options{Keychain: rt.AnonymousKeychain(), Paused: func(host string, wait time.Duration) {
				if host != strings.TrimPrefix(l.URL, "http://") {
					t.Errorf("paused for %q", host)
				}
				paused = append(paused, wait)
			}})
			var slept time.Duration
			client.Sleep = func(_ context.Context, d time.Duration) error { slept += d; return nil }
			r := repositoryOf(t, client, strings.TrimPrefix(l.URL, "http://")+"/a/model", Pull)
			_, err := r.GetManifest(t.Context(), "tag")
			var status *StatusError
			if c.fails != (err != nil) || err != nil && !errors.As(err, &status) {
				t.Errorf("%v", err)
			}
			if slept < c.atLeast || slept > 2*c.atLeast+time.Minute {
				t.Errorf("waited %s, want at least %s", slept, c.atLeast)
			}
			if c.paused != nil && fmt.Sprint(paused) != fmt.Sprint(c.paused) {
				t.Errorf("told of %v, want %v", paused, c.paused)
			}
		})
	}
}

// TestLimitedTogether: requests that meet one limit close the gate once, however the registry says it.
func TestLimitedTogether(t *testing.T) {
	const together = 4
	for _, status := range []int{429, 403, 503} {
		var met, all sync.WaitGroup
		met.Add(together)
		var answered atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if !strings.Contains(req.URL.Path, "/manifests/") || answered.Add(1) > together {
				fmt.Fprint(w, rt.SmallManifest(""))
				return
			}
			met.Done()
			met.Wait()
			w.WriteHeader(status)
			fmt.Fprint(w, `{"errors":[{"code":"TOOMANYREQUESTS"}]}`)
		}))
		var mu sync.Mutex
		var paused []time.Duration
		client := authClient(t, Options{Keychain: rt.AnonymousKeychain(), Paused: func(_ string, wait time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			paused = append(paused, wait)
		}})
		r := repositoryOf(t, client, strings.TrimPrefix(s.URL, "http://")+"/a/model", Pull)
		for i := range together {
			all.Go(func() {
				if _, err := r.GetManifest(t.Context(), fmt.Sprint("tag", i)); err != nil {
					t.Errorf("%d: %v", status, err)
				}
			})
		}
		all.Wait()
		s.Close()
		if len(paused) != 1 || paused[0] != time.Second {
			t.Errorf("%d: paused %v, want once", status, paused)
		}
	}
}

// TestLimitedMirror: nobody waits for a mirror that limits requests.
func TestLimitedMirror(t *testing.T) {
	l, home := newLimiting(t), newLimiting(t)
	l.where, l.times, l.status, l.header = "/v2/", -1, 429, []string{"Retry-After", "40"}
	host := strings.TrimPrefix(home.URL, "http://")
	client := authClient(t, Options{Keychain: rt.AnonymousKeychain(), Mirrors: []Mirror{{Host: host,
		Mirror: strings.TrimPrefix(l.URL, "http://")}}, Paused: func(string, time.Duration) { t.Error("paused") }})
	client.Sleep = func(_ context.Context, d time.Duration) error { t.Errorf("slept %s", d); return nil }
	r := repositoryOf(t, client, host+"/a/model", Pull)
	for _, tag := range []string{"one", "two"} {
		if _, err := r.GetManifest(t.Context(), tag); err != nil {
			t.Error(err)
		}
	}
}
