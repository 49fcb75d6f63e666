package registry

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestInsecureOnlyForNamedHost: Options.Insecure applies to the host in the name, not to hosts that it directs the
// client to.
func TestInsecureOnlyForNamedHost(t *testing.T) {
	store := newStore(t)
	name, _ := putModel(t, store, "model", 1000)
	var logins atomic.Int32
	other := newUnstartedPeer(t)
	other.allow = func(x *exchange) bool {
		if x.r.Header.Get("Authorization") != "" {
			logins.Add(1)
		}
		return true
	}
	other.server.Config.ErrorLog = quiet()
	other.server.StartTLS()
	other.serve(store, name, "team/model", "latest")
	there := "https://localhost:" + strings.Split(other.host(), ":")[1]
	for _, tt := range []struct {
		name  string
		about route
		do    action
		want  bool
	}{
		{"itself", otherRoute, nil, true},
		{"redirect", blobRoute, func(x *exchange) {
			http.Redirect(x.w, x.r, there+x.r.URL.Path, http.StatusTemporaryRedirect)
		}, false},
		{"token server", pingRoute, respond(401, "WWW-Authenticate", `Bearer realm="`+there+`/token"`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newUnstartedPeer(t)
			p.server.Config.ErrorLog = quiet()
			p.server.StartTLS()
			p.serve(store, name, "team/model", "latest")
			if tt.do != nil {
				p.on("GET", tt.about, tt.do)
			}
			c := newClient(t, func(o *Options) {
				o.Connection.Insecure = true
				o.Connection.Keychain = passwordKeychain("secret", p.host(), strings.TrimPrefix(there, "https://"))
			})
			_, err := c.Pull(t.Context(), newStore(t), p.name("team/model"), PullOptions{})
			if tt.want && err != nil || !tt.want && !errors.Is(err, ErrCertificate) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("mirror", func(t *testing.T) {
		p := newUnstartedPeer(t)
		p.server.Config.ErrorLog = quiet()
		p.server.StartTLS()
		p.serve(store, name, "team/model", "latest")
		var warned []string
		c := newClient(t, func(o *Options) {
			o.Connection.Insecure = true
			o.Connection.Keychain = passwordKeychain("secret", "mirror.example")
			o.Connection.Mirrors = []Mirror{{Host: p.host(), Mirror: "mirror.example"}}
			o.Events = func(e Event) {
				if e.Kind == Warned {
					warned = append(warned, e.Err.Error())
				}
			}
		})
		var names sync.Map
		names.Store("mirror.example:443", other.host())
		resolveTo(c, nil, &names)
		if _, err := c.Pull(t.Context(), newStore(t), p.name("team/model"), PullOptions{}); err != nil {
			t.Error(err)
		}
		if len(warned) == 0 || !strings.Contains(warned[0], ErrCertificate.Error()) {
			t.Errorf("warned of %q", warned)
		}
	})
	t.Run("mirror of a registry without TLS", func(t *testing.T) {
		p, mirror := newPeer(t), newPeer(t)
		for _, p := range []*peer{p, mirror} {
			p.serve(store, name, "team/model", "latest")
		}
		for _, plain := range []bool{false, true} {
			c := newClient(t, func(o *Options) {
				o.Connection.PlainHTTP = true
				o.Connection.Mirrors = []Mirror{{Host: p.host(), Mirror: "mirror.example", PlainHTTP: plain}}
			})
			var names sync.Map
			names.Store("mirror.example:80", mirror.host())
			names.Store("mirror.example:443", other.host())
			resolveTo(c, nil, &names)
			if _, err := c.Pull(t.Context(), newStore(t), p.name("team/model"), PullOptions{}); err != nil {
				t.Error(err)
			}
			if asked := len(mirror.log()) > 0; asked != plain {
				t.Errorf("a mirror with plain %v: asked %v without TLS", plain, asked)
			}
		}
	})
	if n := logins.Load(); n > 0 || len(other.log()) > 0 {
		t.Errorf("%d requests with credentials reached another host: %q", n, other.log())
	}
}
