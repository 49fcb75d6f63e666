package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestClassOf(t *testing.T) {
	for addr, want := range map[string]addressClass{
		"8.8.8.8": publicAddress, "2606:4700::1111": publicAddress, "172.32.0.1": publicAddress, "100.128.0.1": publicAddress,
		"10.1.2.3": privateAddress, "172.16.0.1": privateAddress, "192.168.1.1": privateAddress,
		"fd00:ec2::254": privateAddress,
		"100.64.0.1":    privateAddress, "100.100.100.200": privateAddress, "fec0::1": privateAddress,
		"192.0.0.192": privateAddress,
		"127.0.0.1":   loopbackAddress, "127.255.0.9": loopbackAddress, "::1": loopbackAddress,
		"169.254.169.254": linkLocalAddress, "fe80::1": linkLocalAddress, "fe80::1%eth0": linkLocalAddress,
		"168.63.129.16": linkLocalAddress,
		"0.0.0.0":       reservedAddress, "::": reservedAddress, "0.1.2.3": reservedAddress, "224.0.0.1": reservedAddress,
		"ff02::1":         reservedAddress,
		"255.255.255.255": reservedAddress, "240.0.0.1": reservedAddress,
		// Addresses that embed IPv4 addresses: mapped, NAT64, 6to4, Teredo, IPv4-compatible, IPv4-translated.
		"::ffff:169.254.169.254": linkLocalAddress, "::ffff:10.0.0.1": privateAddress, "::ffff:8.8.8.8": publicAddress,
		"64:ff9b::a9fe:a9fe": linkLocalAddress, "64:ff9b::808:808": publicAddress, "64:ff9b:1::808:808": privateAddress,
		"2002:7f00:1::1": loopbackAddress, "2002:808:808::1": publicAddress, "2001:0:1::80ff:fffe": loopbackAddress,
		"::10.0.0.1": privateAddress, "::ffff:0:7f00:1": loopbackAddress,
	} {
		if got := classOf(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
	if got := classOf(netip.Addr{}); got != reservedAddress {
		t.Errorf("no address is %s", got)
	}
}

func TestMayName(t *testing.T) {
	all := []addressClass{publicAddress, privateAddress, loopbackAddress, linkLocalAddress, reservedAddress}
	may := map[addressClass]string{
		publicAddress: "public", privateAddress: "public private", loopbackAddress: "public private loopback",
		linkLocalAddress: "public private link-local", reservedAddress: "public private reserved",
		0:                              "public private loopback link-local reserved",
		privateAddress | publicAddress: "public", loopbackAddress | linkLocalAddress: "public private",
	}
	for by, want := range may {
		var got []string
		for _, to := range all {
			if by.mayName(to) {
				got = append(got, to.String())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%b may name %q, want %q", by, got, want)
		}
	}
}

// resolveTo gives addresses on this machine other classes, and maps host:port pairs to such addresses, as DNS would.
func resolveTo(c *Client, classes map[string]addressClass, names *sync.Map) {
	c.conn.net.classify = func(a netip.AddrPort) addressClass {
		if class := classes[a.String()]; class != 0 {
			return class
		}
		return classOf(a.Addr())
	}
	c.conn.net.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if names != nil {
			if at, ok := names.Load(addr); ok {
				addr = at.(string)
			}
		}
		return (&net.Dialer{ControlContext: checkDial}).DialContext(ctx, network, addr)
	}
}

// TestPrivateAddresses: no response of a public registry makes a client connect to a private address.
func TestPrivateAddresses(t *testing.T) {
	s := newStore(t)
	small, _ := putModel(t, s, "small", 1000)
	var asked atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer inner.Close()
	lead := func(status int) action { return respond(status, "Location", inner.URL+"/latest?token=s3cret-s3cret") }
	pullModel := func(c *Client, p *peer) error {
		_, err := c.Pull(t.Context(), newStore(t), p.name("team/model"), PullOptions{})
		return err
	}
	pushModel := func(chunk int64) func(c *Client, p *peer) error {
		return func(c *Client, p *peer) error {
			_, err := c.Push(t.Context(), s, small, p.name("team/new"), PushOptions{ChunkSize: chunk})
			return err
		}
	}
	for _, tt := range []struct {
		name   string
		method string
		about  route
		answer action
		run    func(c *Client, p *peer) error
		what   string
	}{
		{"manifest", "GET", manifestRoute, lead(302), pullModel, "redirect"},
		{"blob", "GET", blobRoute, lead(307), pullModel, "redirect"},
		{"manifest check", "HEAD", manifestRoute, lead(301), pushModel(0), "redirect"},
		{"blob check", "HEAD", blobRoute, lead(308), pushModel(0), "redirect"},
		{"token server", "GET", pingRoute,
			respond(401, "WWW-Authenticate", `Bearer realm="`+inner.URL+`/token?key=s3cret-s3cret"`), pullModel, "token server"},
		{"upload", "POST", beginRoute, lead(202), pushModel(0), "upload"},
		{"large upload", "POST", beginRoute, lead(202), pushModel(500), "upload"},
		{"redirect of a session's opening", "POST", beginRoute, lead(307), pushModel(0), "redirect"},
		{"redirect of an upload", "PUT", uploadRoute, lead(307), pushModel(0), "upload"},
		{"upload that continues elsewhere", "PATCH", uploadRoute, lead(202), pushModel(500), "upload"},
		{"redirect of a chunk", "PATCH", uploadRoute, lead(308), pushModel(500), "upload"},
		{"manifest to put", "PUT", manifestRoute, lead(307), pushModel(0), "redirect"},
		{"list of referrers", "GET", referrersRoute, lead(302), func(c *Client, p *peer) error {
			_, err := c.Referrers(t.Context(), p.name("team/model"), ocispec.DescriptorEmptyJSON.Digest, "")
			return err
		}, "redirect"},
		{"small blob", "POST", beginRoute, lead(202), func(c *Client, p *peer) error {
			return repositoryOf(t, c.conn, p.host()+"/team/model", push).putBytes(t.Context(), []byte("x"))
		}, "upload"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t)
			p.serve(s, small, "team/model", "latest")
			c := newClient(t)
			resolveTo(c, map[string]addressClass{p.host(): publicAddress}, nil)
			if tt.about == beginRoute || tt.about == uploadRoute {
				p.on("HEAD", blobRoute, respond(404))
			}
			p.on(tt.method, tt.about, tt.answer)
			err := tt.run(c, p)
			if err == nil || !errors.Is(err, ErrPrivateAddress) || temporary(err) {
				t.Fatalf("%v", err)
			}
			if text := err.Error(); !strings.Contains(text, tt.what+" from http://"+p.host()+"/v2/") ||
				!strings.Contains(text, " to "+inner.URL) ||
				!strings.Contains(text, ": it leads from a public to a private address (127.0.0.1 is loopback)") {
				t.Errorf("%v", err)
			}
			checkNoSecrets(t, err, "s3cret")
			if n := asked.Load(); n > 0 {
				t.Errorf("%d requests to the private address", n)
			}
		})
	}
}

// TestResolvedAddresses: the check applies to the resolved address, for each redirect and each connection.
func TestResolvedAddresses(t *testing.T) {
	store := newStore(t)
	name, _ := putModel(t, store, "model", 1000)
	inner, outer, cdn := newPeer(t), newPeer(t), newPeer(t)
	for _, p := range []*peer{inner, outer, cdn} {
		p.serve(store, name, "team/model", "latest")
	}
	classes := map[string]addressClass{
		inner.host(): privateAddress, outer.host(): publicAddress, cdn.host(): publicAddress,
	}
	to := func(host string) action {
		return func(x *exchange) {
			http.Redirect(x.w, x.r, "http://"+host+x.r.URL.Path+"?hop=1", http.StatusTemporaryRedirect)
		}
	}
	for _, tt := range []struct {
		name     string
		registry *peer
		blobs    action // the registry's response
		cdn      action
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
			names.Store("registry.example:80", tt.registry.host())
			names.Store("inner.example:80", inner.host())
			names.Store("cdn.example:80", cdn.host())
			tt.registry.rules, cdn.rules = nil, nil
			tt.registry.on("GET", blobRoute, func(x *exchange) {
				if x.r.Host == "registry.example" && x.r.URL.RawQuery == "" {
					tt.blobs(x)
					return
				}
				x.handle()
			})
			if tt.cdn != nil {
				cdn.on("GET", blobRoute, tt.cdn)
			}
			c := newClient(t, func(o *Options) { o.Connection.PlainHTTP, o.Concurrency = true, 1 })
			resolveTo(c, classes, &names)
			n, err := manifest.ParseName("registry.example/team/model")
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Pull(t.Context(), newStore(t), n, PullOptions{})
			switch {
			case tt.want == "" && err != nil,
				tt.want != "" && (!errors.Is(err, ErrPrivateAddress) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestDNSRebinding: the name of a public registry must not resolve to a private address later on.
func TestDNSRebinding(t *testing.T) {
	outer, inner := newPeer(t), newPeer(t)
	var names sync.Map
	names.Store("registry.example:80", outer.host())
	c := newClient(t, func(o *Options) { o.Connection.PlainHTTP = true })
	resolveTo(c, map[string]addressClass{outer.host(): publicAddress}, &names)
	outer.on("GET", manifestRoute, func(x *exchange) {
		names.Store("registry.example:80", inner.host())
		x.w.Header().Set("Connection", "close")
		http.Redirect(x.w, x.r, "/latest/meta-data", http.StatusFound)
	})
	n, _ := manifest.ParseName("registry.example/team/model")
	_, err := c.Pull(t.Context(), newStore(t), n, PullOptions{})
	want := "registry registry.example has moved from a public to a private address (127.0.0.1 is loopback)"
	if !errors.Is(err, ErrPrivateAddress) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if len(inner.log()) > 0 {
		t.Errorf("requests to the private address: %q", inner.log())
	}
}

// TestPrivateOption: with Options.Private, names lead to public addresses only, except for allowed hosts.
func TestPrivateOption(t *testing.T) {
	p := newPeer(t)
	s := newStore(t)
	name, _ := putModel(t, s, "model", 1000)
	p.serve(s, name, "team/model", "latest")
	var names sync.Map
	names.Store("inner.example:80", p.host())
	allowed := map[string]bool{}
	pull := func(host string, mirrors ...Mirror) error {
		c := newClient(t, func(o *Options) {
			o.Connection.PlainHTTP, o.Connection.Mirrors = true, mirrors
			o.Connection.Private = func(host string) bool { return allowed[host] }
		})
		resolveTo(c, nil, &names)
		n, err := manifest.ParseName(host + "/team/model")
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Pull(t.Context(), newStore(t), n, PullOptions{})
		return err
	}
	for host, want := range map[string]string{
		p.host():          "registry " + p.host() + " is at a loopback address (127.0.0.1)",
		"inner.example":   "registry inner.example is at a loopback address (127.0.0.1)",
		"169.254.169.254": "is at a link-local address",
		"10.0.0.1:5000":   "is at a private address", "localhost:1": "is at a loopback address (this machine)",
		"0.0.0.0:5000": "is at a reserved address",
	} {
		err := pull(host)
		if !errors.Is(err, ErrPrivateAddress) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", host, err)
		}
		if len(p.log()) > 0 {
			t.Fatalf("requests: %q", p.log())
		}
	}
	allowed["inner.example"] = true
	if err := pull("inner.example"); err != nil {
		t.Error(err)
	}
	if err := pull("8.8.8.8", Mirror{Host: "8.8.8.8", Mirror: p.host()}); err != nil {
		t.Errorf("the operator's mirror: %v", err)
	}
}

// TestProxyAndAddresses: a proxy resolves names itself, so through a proxy only literal addresses are checked.
func TestProxyAndAddresses(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Host)
		if strings.Contains(r.URL.Path, "/manifests/") {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		}
	}))
	defer proxy.Close()
	u, _ := url.Parse(proxy.URL)
	c := newClient(t, func(o *Options) { o.Connection.PlainHTTP = true })
	c.conn.net.base.Proxy = http.ProxyURL(u)
	n, _ := manifest.ParseName("registry.example.com/team/model")
	_, err := c.Pull(t.Context(), newStore(t), n, PullOptions{})
	want := "from a public to a private address (169.254.169.254 is link-local)"
	if !errors.Is(err, ErrPrivateAddress) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	for _, host := range asked {
		if host != "registry.example.com" {
			t.Errorf("request to the proxy for %s", host)
		}
	}
}

// TestManyNamedHosts: a registry that names more hosts than are remembered gets the strictest limit for the others.
func TestManyNamedHosts(t *testing.T) {
	h, err := authClient(t, connOptions{}).newHost("10.0.0.1:5000") // private: it may lead to private addresses
	if err != nil {
		t.Fatal(err)
	}
	from := &url.URL{Scheme: "https", Host: "10.0.0.1:5000"}
	lead := func(i int) error {
		u := &url.URL{Scheme: "https", Host: fmt.Sprintf("10.1.%d.%d", i/256, i%256)}
		h.recordNaming("redirect", from, u)
		return h.checkLiteral(u)
	}
	for i := range limits.NamedHosts {
		if err := lead(i); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := lead(limits.NamedHosts); !errors.Is(err, ErrPrivateAddress) {
		t.Errorf("one more: %v", err)
	}
	if err := lead(0); err != nil || len(h.named) != limits.NamedHosts {
		t.Errorf("the first host: %v; %d are remembered", err, len(h.named))
	}
}
