package registry

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
)

// TestInsecureOnlyForNamedHost: Options.Insecure applies to the host in the name, not to hosts that it directs the
// client to.
func TestInsecureOnlyForNamedHost(t *testing.T) {
	store := rt.NewStore(t)
	name, _ := rt.PutModel(t, store, "model", 1000)
	var logins atomic.Int32
	other := rt.NewUnstarted(t)
	other.Allow = func(x *rt.Exchange) bool {
		if x.R.Header.Get("Authorization") != "" {
			logins.Add(1)
		}
		return true
	}
	other.Server.Config.ErrorLog = rt.Quiet()
	other.Server.StartTLS()
	other.Serve(store, name, "team/model", "latest")
	there := "https://localhost:" + strings.Split(other.Host(), ":")[1]
	for _, tt := range []struct {
		name  string
		about rt.Route
		do    rt.Action
		want  bool
	}{
		{"itself", rt.OtherRoute, nil, true},
		{"redirect", rt.BlobRoute, func(x *rt.Exchange) {
			http.Redirect(x.W, x.R, there+x.R.URL.Path, http.StatusTemporaryRedirect)
		}, false},
		{"token server", rt.PingRoute, rt.Respond(401, "WWW-Authenticate", `Bearer realm="`+there+`/token"`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := rt.NewUnstarted(t)
			p.Server.Config.ErrorLog = rt.Quiet()
			p.Server.StartTLS()
			p.Serve(store, name, "team/model", "latest")
			if tt.do != nil {
				p.On("GET", tt.about, tt.do)
			}
			c := newClient(t, func(o *Options) {
				o.Connection.Insecure = true
				o.Connection.Keychain = rt.PasswordKeychain("secret", p.Host(), strings.TrimPrefix(there, "https://"))
			})
			_, err := c.Pull(t.Context(), rt.NewStore(t), p.Name("team/model"), PullOptions{})
			if tt.want && err != nil || !tt.want && !errors.Is(err, remote.ErrCertificate) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("mirror", func(t *testing.T) {
		p := rt.NewUnstarted(t)
		p.Server.Config.ErrorLog = rt.Quiet()
		p.Server.StartTLS()
		p.Serve(store, name, "team/model", "latest")
		var warned []string
		c := newClient(t, func(o *Options) {
			o.Connection.Insecure = true
			o.Connection.Keychain = rt.PasswordKeychain("secret", "mirror.example")
			o.Connection.Mirrors = []remote.Mirror{{Host: p.Host(), Mirror: "mirror.example"}}
			o.Events = func(e Event) {
				if e.Kind == Warned {
					warned = append(warned, e.Err.Error())
				}
			}
		})
		var names sync.Map
		names.Store("mirror.example:443", other.Host())
		resolveTo(c, nil, &names)
		if _, err := c.Pull(t.Context(), rt.NewStore(t), p.Name("team/model"), PullOptions{}); err != nil {
			t.Error(err)
		}
		if len(warned) == 0 || !strings.Contains(warned[0], remote.ErrCertificate.Error()) {
			t.Errorf("warned of %q", warned)
		}
	})
	t.Run("mirror of a registry without TLS", func(t *testing.T) {
		p, mirror := rt.New(t), rt.New(t)
		for _, p := range []*rt.Peer{p, mirror} {
			p.Serve(store, name, "team/model", "latest")
		}
		for _, plain := range []bool{false, true} {
			c := newClient(t, func(o *Options) {
				o.Connection.PlainHTTP = true
				o.Connection.Mirrors = []remote.Mirror{{Host: p.Host(), Mirror: "mirror.example", PlainHTTP: plain}}
			})
			var names sync.Map
			names.Store("mirror.example:80", mirror.Host())
			names.Store("mirror.example:443", other.Host())
			resolveTo(c, nil, &names)
			if _, err := c.Pull(t.Context(), rt.NewStore(t), p.Name("team/model"), PullOptions{}); err != nil {
				t.Error(err)
			}
			if requested := len(mirror.Log()) > 0; requested != plain {
				t.Errorf("a mirror with plain %v: asked %v without TLS", plain, requested)
			}
		}
	})
	if n := logins.Load(); n > 0 || len(other.Log()) > 0 {
		t.Errorf("%d requests with credentials reached another host: %q", n, other.Log())
	}
}
