package hub

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/registry/settings"
)

// TestSetting: an endpoint is used as its setting says. What the options say goes before it.
func TestSetting(t *testing.T) {
	for _, c := range []struct {
		what     string
		opts     Options
		setting  settings.Host
		requests int64
		says     string
	}{
		{"of the setting", Options{}, settings.Host{Timeout: 150 * time.Millisecond, Attempts: 2}, 2,
			"no response for 150ms"},
		{"of the options", Options{Stall: 200 * time.Millisecond, Attempts: 3},
			settings.Host{Timeout: time.Hour, Attempts: 1}, 3, "no response for 200ms"},
	} {
		h := start(t)
		h.Add("tiny/model", few())
		var requests atomic.Int64
		respond(h, func(_ http.Handler, _ http.ResponseWriter, r *http.Request, _ bool) bool {
			requests.Add(1)
			<-r.Context().Done()
			return true
		})
		c.opts.Setting = func(host string) settings.Host {
			if !strings.HasSuffix(h.URL(), "//"+host) {
				t.Errorf("asked for %q", host)
			}
			return c.setting
		}
		c.opts.Endpoint, c.opts.ModelScope = h.URL(), h.URL()
		c.opts.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		expect(t, c.what, readAll(t, New(c.opts), "hf.co/tiny/model"), c.says)
		if got := requests.Load(); got != c.requests {
			t.Errorf("%s: %d requests, want %d", c.what, got, c.requests)
		}
	}
}

// TestDrip: a server that sends next to nothing does not hold a download.
func TestDrip(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	respond(h, func(_ http.Handler, w http.ResponseWriter, r *http.Request, cdn bool) bool {
		if !strings.Contains(r.URL.Path, "safetensors") {
			return false
		}
		w.Header().Set("Content-Length", "1000000")
		for r.Context().Err() == nil {
			w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
		return true
	})
	expect(t, "drip", readAll(t, client(h, Options{Attempts: 2}), "hf.co/tiny/model"), "the server is too slow")
}
