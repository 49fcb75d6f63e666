package registry

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ingotml/ingot/registry/fetch"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/settings"
)

// TestPullIsPatient: a pull from a server that takes its time succeeds, and one from a server that holds it ends within
// a bound.
func TestPullIsPatient(t *testing.T) {
	const size = 1_000_000
	silent := func(d time.Duration) func(x *slowExchange) *http.Response {
		return func(x *slowExchange) *http.Response {
			if x.sleep(d) != nil {
				return nil
			}
			return x.part(size)
		}
	}
	// without serves no ranges.
	without := func(response func(x *slowExchange) *http.Response) func(x *slowExchange) *http.Response {
		return func(x *slowExchange) *http.Response {
			x.start, x.end = 0, size
			x.Header.Del("Range")
			return response(x)
		}
	}
	forever := 1000 * time.Hour
	for _, c := range []struct {
		what    string
		blob    func(x *slowExchange) *http.Response
		setting settings.Host
		within  time.Duration
		says    string // the error; "": it succeeds
	}{
		{"a cache that is silent for 45 s", without(silent(45 * time.Second)), settings.Host{}, 3 * time.Minute, ""},
		{"a cache that is silent for 45 s, with ranges", silent(45 * time.Second), settings.Host{}, 3 * time.Minute, ""},
		{"a cache that is silent for 8 minutes", without(silent(8 * time.Minute)), settings.Host{}, 35 * time.Minute, ""},
		{"a cache that is silent for 15 minutes, with a timeout of 20", without(silent(15 * time.Minute)),
			settings.Host{Timeout: 20 * time.Minute}, 31 * time.Minute, ""},
		{"silence for 2 minutes in the middle, without ranges", without(func(x *slowExchange) *http.Response {
			return x.whole(size/2, 2*time.Minute)
		}), settings.Host{}, 15 * time.Minute, ""},
		{"25 kB a second", without(func(x *slowExchange) *http.Response { return x.whole(25_000, time.Second) }),
			settings.Host{}, time.Minute, ""},
		{"25 kB a second, with a timeout of a second",
			without(func(x *slowExchange) *http.Response { return x.whole(2500, time.Second/10) }),
			settings.Host{Timeout: time.Second}, time.Minute, ""},
		{"the connection closes after each 64 KiB", func(x *slowExchange) *http.Response {
			r := x.part(size)
			r.Body = io.NopCloser(io.LimitReader(r.Body, 64<<10))
			return r
		}, settings.Host{}, time.Minute, ""},
		{"each range has 64 KiB", func(x *slowExchange) *http.Response { return x.part(64 << 10) }, settings.Host{},
			time.Minute, ""},
		{"every range is the whole", without(func(x *slowExchange) *http.Response { return x.part(size) }), settings.Host{},
			time.Second, ""},
		{"every range is another", func(x *slowExchange) *http.Response {
			if x.Header.Get("Range") == "" {
				return x.part(size)
			}
			x.start, x.end = x.start/2+1, x.end/2+1
			return x.part(size)
		}, settings.Host{}, time.Second, ""},
		{"503 with a date that has passed", func(x *slowExchange) *http.Response {
			if x.n < 3 {
				return x.status(503, "Retry-After", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
			}
			return x.part(size)
		}, settings.Host{}, time.Minute, ""},
		{"429 without a hint for 5 minutes", func() func(x *slowExchange) *http.Response {
			var begun time.Time
			return func(x *slowExchange) *http.Response {
				if begun.IsZero() {
					begun = time.Now()
				}
				if time.Since(begun) < 5*time.Minute {
					return x.status(429)
				}
				return x.part(size)
			}
		}(), settings.Host{}, 7 * time.Minute, ""},
		{"ten retries", func(x *slowExchange) *http.Response {
			if x.n < 10 {
				return x.status(522)
			}
			return x.part(size)
		}, settings.Host{Attempts: 11}, 10 * time.Minute, ""},

		{"no retries", func(x *slowExchange) *http.Response { return x.status(522) }, settings.Host{Attempts: 1},
			time.Second, "522"},
		{"429 for ever", func(x *slowExchange) *http.Response { return x.status(429) }, settings.Host{}, 12 * time.Minute,
			"429"},
		{"429 for ever, for four minutes each", func(x *slowExchange) *http.Response {
			return x.status(429, "Retry-After", "240")
		}, settings.Host{}, 20 * time.Minute, "429"},
		{"429 until tomorrow", func(x *slowExchange) *http.Response { return x.status(429, "Retry-After", "86400") },
			settings.Host{}, 2 * time.Minute, "Retry-After: 24h"},
		{"never answers", silent(forever), settings.Host{}, 27 * time.Minute, "no response for 10m"},
		{"never answers, with a timeout", silent(forever), settings.Host{Timeout: 5 * time.Second, Attempts: 3},
			20 * time.Second, "no response for 5s"},
		{"a header and nothing", func(x *slowExchange) *http.Response {
			return x.body(size, func() ([]byte, error) { return nil, x.sleep(forever) })
		}, settings.Host{}, 12 * time.Minute, "no data for"},
		{"a byte every 5 seconds", func(x *slowExchange) *http.Response { return x.whole(1, 5*time.Second) },
			settings.Host{}, 12 * time.Minute, "too slow"},
		{"a byte per range", func(x *slowExchange) *http.Response { return x.part(1) }, settings.Host{}, time.Minute,
			"only 1 of the"},
		{"a byte per connection", func(x *slowExchange) *http.Response {
			r := x.part(size)
			r.Body = io.NopCloser(io.LimitReader(r.Body, 1))
			return r
		}, settings.Host{}, time.Minute, "after 1 of"},
		{"closes after 64 KiB, without ranges", without(func(x *slowExchange) *http.Response {
			r := x.part(size)
			r.Body = io.NopCloser(io.LimitReader(r.Body, 64<<10))
			return r
		}), settings.Host{}, time.Minute, "after 65536 of"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, name := slowImage(t, size)
				s.blob = c.blob
				client := newPullClient(t, func(o *Options) {
					o.Connection.Transport = s
					o.Connection.Setting = func(string) settings.Host { return c.setting }
				})
				client.conn.Sleep = remote.Sleep
				client.tune.Response, client.tune.Stall = fetch.Tuned.Response, fetch.Tuned.Stall
				began := time.Now()
				_, err := client.Pull(t.Context(), newEmptyStore(t), name, PullOptions{})
				if took := time.Since(began); took > c.within {
					t.Errorf("it took %s", took)
				}
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%v, want %q", err, c.says)
				}
			})
		})
	}
}

// TestManifestIsPatient: requests for documents have watches too.
func TestManifestIsPatient(t *testing.T) {
	for _, c := range []struct {
		what     string
		document func(x *slowExchange) *http.Response
		within   time.Duration
		says     string
	}{
		{"silent for 50 s", func(x *slowExchange) *http.Response {
			if x.sleep(50*time.Second) != nil {
				return nil
			}
			return x.body(len(x.content), pieces(x.content))
		}, 90 * time.Second, ""},
		{"never answers", func(x *slowExchange) *http.Response { x.sleep(1000 * time.Hour); return nil }, 10 * time.Minute,
			"no response for 2m"},
		{"a header and nothing", func(x *slowExchange) *http.Response {
			return x.body(len(x.content), func() ([]byte, error) { return nil, x.sleep(1000 * time.Hour) })
		}, 10 * time.Minute, "no data for"},
		{"drips", func(x *slowExchange) *http.Response { return x.whole(1, time.Second) }, 10 * time.Minute, "too slow"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, name := slowImage(t, 10)
				s.document = c.document
				s.blob = func(x *slowExchange) *http.Response { return x.part(10) }
				client := newPullClient(t, func(o *Options) { o.Connection.Transport = s })
				client.conn.Sleep = remote.Sleep
				began := time.Now()
				_, err := client.Pull(t.Context(), newEmptyStore(t), name, PullOptions{})
				if took := time.Since(began); took > c.within {
					t.Errorf("it took %s", took)
				}
				if c.says == "" && err != nil || c.says != "" &&
					(err == nil || !strings.Contains(err.Error(), c.says) || !errors.Is(err, remote.ErrInterrupted)) {
					t.Errorf("%v, want %q", err, c.says)
				}
			})
		})
	}
}

// TestPullHeadLimited: a pull does not wait for a HEAD that only saves a GET.
func TestPullHeadLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, name := slowImage(t, 10)
		s.blob = func(x *slowExchange) *http.Response { return x.part(10) }
		client := newPullClient(t, func(o *Options) { o.Connection.Transport = s })
		client.conn.Sleep = remote.Sleep
		store := newEmptyStore(t)
		if _, err := client.Pull(t.Context(), store, name, PullOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, status := range []int{429, 503} {
			s.head = func(x *slowExchange) *http.Response { return x.status(status) }
			began := time.Now()
			if _, err := client.Pull(t.Context(), store, name, PullOptions{}); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%d: it took %s", status, took)
			}
		}
	})
}

// TestSilentMirror: a mirror that never answers is left after one wait, and not asked for the next blobs.
func TestSilentMirror(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, name := slowImage(t, 1_000_000)
		s.blob = func(x *slowExchange) *http.Response { return x.part(1_000_000) }
		client := newPullClient(t, func(o *Options) {
			o.Connection.Transport = s
			o.Connection.Mirrors = []remote.Mirror{{Host: name.Host, Mirror: "mirror.example.com"}}
		})
		client.conn.Sleep = remote.Sleep
		began := time.Now()
		if _, err := client.Pull(t.Context(), newEmptyStore(t), name, PullOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 40*time.Second || s.mirrored != 1 {
			t.Errorf("it took %s and %d requests to the mirror", took, s.mirrored)
		}
	})
}

// TestTransfersPauseTogether: a limit that several transfers meet at a time is one event.
func TestTransfersPauseTogether(t *testing.T) {
	p := rt.New(t)
	img := serve(t, p, map[string][]byte{"a": rt.Noise(1, 1000), "b": rt.Noise(2, 1000), "c": rt.Noise(3, 1000)})
	var met sync.WaitGroup
	met.Add(3)
	p.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
		met.Done()
		met.Wait()
		rt.Respond(429)(x)
	}).Times(3)
	var paused []Event
	c := newPullClient(t, func(o *Options) {
		o.Events = func(e Event) {
			if e.Kind == Paused {
				paused = append(paused, e)
			}
		}
	})
	if _, err := c.Pull(t.Context(), newEmptyStore(t), img.name, PullOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(paused) != 1 || paused[0].Name != p.Host() || paused[0].Wait != time.Second {
		t.Errorf("%+v", paused)
	}
}
