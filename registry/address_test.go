package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/address"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// resolveTo gives addresses on this machine other classes, and maps host:port pairs to such addresses, as DNS would.
func resolveTo(c *Client, classes map[string]address.Class, names *sync.Map) {
	c.conn.Net.Classify = func(a netip.AddrPort) address.Class {
		if class := classes[a.String()]; class != 0 {
			return class
		}
		return address.ClassOf(a.Addr())
	}
	dial := c.conn.Net.Base.DialContext
	c.conn.Net.Base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if names != nil {
			if at, ok := names.Load(addr); ok {
				addr = at.(string)
			}
		}
		return dial(ctx, network, addr)
	}
}

// TestPrivateAddresses: no response of a public registry makes a client connect to a private address.
func TestPrivateAddresses(t *testing.T) {
	s := rt.NewStore(t)
	small, _ := rt.PutModel(t, s, "small", 1000)
	var requests atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer inner.Close()
	lead := func(status int) rt.Action {
		return rt.Respond(status, "Location", inner.URL+"/latest?token=s3cret-s3cret")
	}
	pullModel := func(c *Client, p *rt.Peer) error {
		_, err := c.Pull(t.Context(), rt.NewStore(t), p.Name("team/model"), PullOptions{})
		return err
	}
	pushModel := func(chunk int64) func(c *Client, p *rt.Peer) error {
		return func(c *Client, p *rt.Peer) error {
			_, err := c.Push(t.Context(), s, small, p.Name("team/new"), PushOptions{ChunkSize: chunk})
			return err
		}
	}
	for _, tt := range []struct {
		name     string
		method   string
		about    rt.Route
		response rt.Action
		run      func(c *Client, p *rt.Peer) error
		what     string
	}{
		{"manifest", "GET", rt.ManifestRoute, lead(302), pullModel, "redirect"},
		{"blob", "GET", rt.BlobRoute, lead(307), pullModel, "redirect"},
		{"manifest check", "HEAD", rt.ManifestRoute, lead(301), pushModel(0), "redirect"},
		{"blob check", "HEAD", rt.BlobRoute, lead(308), pushModel(0), "redirect"},
		{"token server", "GET", rt.PingRoute,
			rt.Respond(401, "WWW-Authenticate", `Bearer realm="`+inner.URL+`/token?key=s3cret-s3cret"`), pullModel,
			"token server"},
		{"upload", "POST", rt.BeginRoute, lead(202), pushModel(0), "upload"},
		{"large upload", "POST", rt.BeginRoute, lead(202), pushModel(500), "upload"},
		{"redirect of a session's opening", "POST", rt.BeginRoute, lead(307), pushModel(0), "redirect"},
		{"redirect of an upload", "PUT", rt.UploadRoute, lead(307), pushModel(0), "upload"},
		{"upload that continues elsewhere", "PATCH", rt.UploadRoute, lead(202), pushModel(500), "upload"},
		{"redirect of a chunk", "PATCH", rt.UploadRoute, lead(308), pushModel(500), "upload"},
		{"manifest to put", "PUT", rt.ManifestRoute, lead(307), pushModel(0), "redirect"},
		{"list of referrers", "GET", rt.ReferrersRoute, lead(302), func(c *Client, p *rt.Peer) error {
			_, err := c.Referrers(t.Context(), p.Name("team/model"), ocispec.DescriptorEmptyJSON.Digest, "")
			return err
		}, "redirect"},
		{"small blob", "POST", rt.BeginRoute, lead(202), func(c *Client, p *rt.Peer) error {
			return putSmall(t, c, p.Name("team/model"))
		}, "upload"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := rt.New(t)
			p.Serve(s, small, "team/model", "latest")
			c := newClient(t)
			resolveTo(c, map[string]address.Class{p.Host(): address.Public}, nil)
			if tt.about == rt.BeginRoute || tt.about == rt.UploadRoute {
				p.On("HEAD", rt.BlobRoute, rt.Respond(404))
			}
			p.On(tt.method, tt.about, tt.response)
			err := tt.run(c, p)
			if err == nil || !errors.Is(err, remote.ErrPrivateAddress) || remote.Temporary(err) {
				t.Fatalf("%v", err)
			}
			if text := err.Error(); !strings.Contains(text, tt.what+" from http://"+p.Host()+"/v2/") ||
				!strings.Contains(text, " to "+inner.URL) ||
				!strings.Contains(text, ": it leads from a public to a private address (127.0.0.1 is loopback)") {
				t.Errorf("%v", err)
			}
			rt.CheckNoSecrets(t, err, "s3cret")
			if n := requests.Load(); n > 0 {
				t.Errorf("%d requests to the private address", n)
			}
		})
	}
}

// TestResolvedAddresses: the check applies to the resolved address, for each redirect and each connection.
func TestResolvedAddresses(t *testing.T) {
	store := rt.NewStore(t)
	name, _ := rt.PutModel(t, store, "model", 1000)
	inner, outer, cdn := rt.New(t), rt.New(t), rt.New(t)
	for _, p := range []*rt.Peer{inner, outer, cdn} {
		p.Serve(store, name, "team/model", "latest")
	}
	classes := map[string]address.Class{
		inner.Host(): address.Private, outer.Host(): address.Public, cdn.Host(): address.Public,
	}
	to := func(host string) rt.Action {
		return func(x *rt.Exchange) {
			http.Redirect(x.W, x.R, "http://"+host+x.R.URL.Path+"?hop=1", http.StatusTemporaryRedirect)
		}
	}
	for _, tt := range []struct {
		name     string
		registry *rt.Peer
		blobs    rt.Action // the registry's response
		cdn      rt.Action
		want     string // empty: success
	}{
		{"public to a name of a private address", outer, to("inner.example"), nil,
			"redirect from http://registry.example/v2/team/model/blobs/"},
		{"by way of another public host", outer, to("cdn.example"), to("inner.example"),
			"redirect from http://cdn.example/v2/team/model/blobs/"},
		{"public to public", outer, to("cdn.example"), nil, ""},
		{"private to public", inner, to("cdn.example"), nil, ""},
		{"private to private", inner, to("inner.example"), nil, ""},
		{"private to public to private", inner, to("cdn.example"), to("inner.example"),
			"redirect from http://cdn.example/v2/team/model/blobs/"},
		{"private to public to itself", inner, to("cdn.example"), to("registry.example"), ""},
		{"private to loopback", inner, to("localhost:1"), nil, "it leads from a private to a loopback address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var names sync.Map
			names.Store("registry.example:80", tt.registry.Host())
			names.Store("inner.example:80", inner.Host())
			names.Store("cdn.example:80", cdn.Host())
			tt.registry.Reset()
			cdn.Reset()
			tt.registry.On("GET", rt.BlobRoute, func(x *rt.Exchange) {
				if x.R.Host == "registry.example" && x.R.URL.RawQuery == "" {
					tt.blobs(x)
					return
				}
				x.Handle()
			})
			if tt.cdn != nil {
				cdn.On("GET", rt.BlobRoute, tt.cdn)
			}
			c := newClient(t, func(o *Options) { o.Connection.PlainHTTP, o.Concurrency = true, 1 })
			resolveTo(c, classes, &names)
			n, err := manifest.ParseName("registry.example/team/model")
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Pull(t.Context(), rt.NewStore(t), n, PullOptions{})
			switch {
			case tt.want == "" && err != nil,
				tt.want != "" && (!errors.Is(err, remote.ErrPrivateAddress) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestDNSRebinding: the name of a public registry must not resolve to a private address later on.
func TestDNSRebinding(t *testing.T) {
	outer, inner := rt.New(t), rt.New(t)
	var names sync.Map
	names.Store("registry.example:80", outer.Host())
	c := newClient(t, func(o *Options) { o.Connection.PlainHTTP = true })
	resolveTo(c, map[string]address.Class{outer.Host(): address.Public}, &names)
	outer.On("GET", rt.ManifestRoute, func(x *rt.Exchange) {
		names.Store("registry.example:80", inner.Host())
		x.W.Header().Set("Connection", "close")
		http.Redirect(x.W, x.R, "/latest/meta-data", http.StatusFound)
	})
	n, _ := manifest.ParseName("registry.example/team/model")
	_, err := c.Pull(t.Context(), rt.NewStore(t), n, PullOptions{})
	want := "registry registry.example has moved from a public to a private address (127.0.0.1 is loopback)"
	if !errors.Is(err, remote.ErrPrivateAddress) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if len(inner.Log()) > 0 {
		t.Errorf("requests to the private address: %q", inner.Log())
	}
}

// TestPrivateOption: with Options.Private, names lead to public addresses only, except for allowed hosts.
func TestPrivateOption(t *testing.T) {
	p := rt.New(t)
	s := rt.NewStore(t)
	name, _ := rt.PutModel(t, s, "model", 1000)
	p.Serve(s, name, "team/model", "latest")
	var names sync.Map
	names.Store("inner.example:80", p.Host())
	allowed := map[string]bool{}
	pull := func(host string, mirrors ...remote.Mirror) error {
		c := newClient(t, func(o *Options) {
			o.Connection.PlainHTTP, o.Connection.Mirrors = true, mirrors
			o.Connection.Private = func(host string) bool { return allowed[host] }
		})
		resolveTo(c, nil, &names)
		n, err := manifest.ParseName(host + "/team/model")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Pull(t.Context(), rt.NewStore(t), n, PullOptions{})
		return err
	}
	for host, want := range map[string]string{
		p.Host():          "registry " + p.Host() + " is at a loopback address (127.0.0.1)",
		"inner.example":   "registry inner.example is at a loopback address (127.0.0.1)",
		"169.254.169.254": "is at a link-local address",
		"10.0.0.1:5000":   "is at a private address", "localhost:1": "is at a loopback address (this machine)",
		"0.0.0.0:5000": "is at a reserved address",
	} {
		err := pull(host)
		if !errors.Is(err, remote.ErrPrivateAddress) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", host, err)
		}
		if len(p.Log()) > 0 {
			t.Fatalf("requests: %q", p.Log())
		}
	}
	allowed["inner.example"] = true
	if err := pull("inner.example"); err != nil {
		t.Error(err)
	}
	if err := pull("8.8.8.8", remote.Mirror{Host: "8.8.8.8", Mirror: p.Host()}); err != nil {
		t.Errorf("the operator's mirror: %v", err)
	}
}

// TestProxyAndAddresses: a proxy resolves names itself, so through a proxy only literal addresses are checked.
func TestProxyAndAddresses(t *testing.T) {
	var requests []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Host)
		if strings.Contains(r.URL.Path, "/manifests/") {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		}
	}))
	defer proxy.Close()
	u, _ := url.Parse(proxy.URL)
	c := newClient(t, func(o *Options) { o.Connection.PlainHTTP = true })
	c.conn.Net.Base.Proxy = http.ProxyURL(u)
	n, _ := manifest.ParseName("registry.example.com/team/model")
	_, err := c.Pull(t.Context(), rt.NewStore(t), n, PullOptions{})
	want := "from a public to a private address (169.254.169.254 is link-local)"
	if !errors.Is(err, remote.ErrPrivateAddress) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	for _, host := range requests {
		if host != "registry.example.com" {
			t.Errorf("request to the proxy for %s", host)
		}
	}
}
