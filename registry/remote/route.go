package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/credentials"
	"github.com/ingotml/ingot/registry/redact"
)

// connKey selects a transport: only requests with equal keys share connections.
type connKey struct {
	namers   address.Class             // classes of the hosts that named the address; 0: the user or the operator named it
	insecure bool                      // skip certificate verification
	proxied  bool                      // a proxy resolves the host name
	with     *credentials.Certificates // of the user; nil: none
	own      bool                      // with shows the user's own
}

// network holds a client's transports, and restricts each to the addresses that its requests may reach. The check
// applies to the resolved address, before the connection is made.
type network struct {
	Base     *http.Transport // template of all transports; tests change it before the first request
	Classify func(netip.AddrPort) address.Class

	mu           sync.Mutex
	transports   map[connKey]*http.Transport
	firstClasses map[string]address.Class // of registries that users named, by host:port: class of the first address
}

func newNetwork(base *http.Transport) *network {
	return &network{Base: base, transports: map[connKey]*http.Transport{}, firstClasses: map[string]address.Class{},
		Classify: func(a netip.AddrPort) address.Class { return address.ClassOf(a.Addr()) }}
}

// transport returns the transport for a key.
func (n *network) transport(k connKey) *http.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.transports[k]
	if t == nil {
		t = n.Base.Clone()
		if k.with != nil {
			t.TLSClientConfig = k.with.Config(t.TLSClientConfig, k.own)
		}
		if k.insecure {
			if t.TLSClientConfig == nil {
				t.TLSClientConfig = &tls.Config{}
			}
			t.TLSClientConfig.InsecureSkipVerify = true // the operator asked for it, for this host only
		}
		if !k.proxied {
			t.Proxy = nil
			t.DialContext = n.dial(k.namers)
		}
		n.transports[k] = t
	}
	return t
}

// CloseIdle closes idle connections.
func (n *network) CloseIdle() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.transports {
		t.CloseIdleConnections()
	}
}

// proxy returns the proxy that the request goes through, or nil.
func (n *network) proxy(req *http.Request) (*url.URL, error) {
	if n.Base.Proxy == nil {
		return nil, nil
	}
	proxy, err := n.Base.Proxy(req)
	if err != nil {
		return nil, errors.New("the proxy URL in the environment is invalid") // err quotes the proxy's password
	}
	return proxy, nil
}

// checkKey is the context key of the function that [checkDial] calls.
type checkKey struct{}

// checkDial is a [net.Dialer]'s ControlContext. It is called with each resolved address before the connection is made.
func checkDial(ctx context.Context, _, address string, _ syscall.RawConn) error {
	check, _ := ctx.Value(checkKey{}).(func(netip.AddrPort) error)
	if check == nil {
		return nil
	}
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q cannot be classified: %w", redact.Clip(address), ErrPrivateAddress)
	}
	return check(addr)
}

// dial returns a dial function that refuses addresses which hosts of these classes may not name. An empty set is for
// registries that the user named. They may be at any address, but later connections are limited to what the first
// address may name: whoever controls the DNS name must not be able to point it at a more private address (DNS
// rebinding).
func (n *network) dial(by address.Class) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		bound, moved := by, false
		if by == 0 {
			n.mu.Lock()
			bound = n.firstClasses[host]
			n.mu.Unlock()
			moved = bound != 0
		}
		check := func(a netip.AddrPort) error {
			if class := n.Classify(a); !bound.MayName(class) {
				return &addressError{rebound: moved, namers: bound, class: class, addr: a.Addr().Unmap()}
			}
			return nil
		}
		conn, err := n.Base.DialContext(context.WithValue(ctx, checkKey{}, check), network, host)
		if err != nil || by != 0 {
			return conn, err
		}
		if at := address.RemoteAddr(conn.RemoteAddr()); at.IsValid() {
			n.mu.Lock()
			if n.firstClasses[host] == 0 {
				n.firstClasses[host] = n.Classify(at)
			}
			n.mu.Unlock()
		}
		return conn, nil
	}
}

// naming records which response directed the client to an address.
type naming struct {
	what   string // as in addressError
	from   string
	namers address.Class
}

// recordNaming notes that a response from one address named another. Requests to the latter are then limited to what
// the former may name.
func (h *host) recordNaming(what string, from, to *url.URL) {
	if h.owns(to) {
		return
	}
	key := origin(to)
	h.mu.Lock()
	defer h.mu.Unlock()
	n, known := h.named[key]
	if !known && len(h.named) >= limits.NamedHosts {
		return // the strictest limit applies to it
	}
	h.named[key] = naming{what, redact.DisplayURL(from), n.namers | h.classAt(from)}
}

// classAt returns the class of the address that serves u, as far as it is known, else public, which is the strictest.
// The caller must hold h.mu.
func (h *host) classAt(u *url.URL) address.Class {
	if class := h.responseClasses[origin(u)]; class != 0 {
		return class
	}
	if class, _ := h.c.literal(u); class != 0 {
		return class
	}
	return address.Public
}

// naming returns what named the address of u.
func (h *host) naming(u *url.URL) naming {
	if h.owns(u) {
		return naming{namers: h.namers}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, ok := h.named[origin(u)]; ok {
		return n
	}
	by := h.classAt(&url.URL{Scheme: h.scheme, Host: h.addr})
	if len(h.named) >= limits.NamedHosts {
		by |= address.Public
	}
	return naming{"upload", h.base(), by} // resumed: an earlier run opened its session
}

// literal returns the class of a host that is an IP address or a name of this machine. It returns 0 for other names,
// which need a DNS lookup.
func (c *Client) literal(u *url.URL) (address.Class, netip.Addr) {
	name, _, _ := strings.Cut(u.Hostname(), "%")
	if addr, err := netip.ParseAddr(strings.TrimSuffix(name, ".")); err == nil {
		_, port, _ := net.SplitHostPort(origin(u))
		at, _ := netip.ParseAddrPort(net.JoinHostPort(addr.String(), port))
		return c.classify(netip.AddrPortFrom(addr, at.Port())), addr.Unmap()
	}
	if address.IsLoopback(u.Host) {
		return address.Loopback, netip.Addr{}
	}
	return 0, netip.Addr{}
}

func (c *Client) classify(a netip.AddrPort) address.Class {
	if c.Net != nil {
		return c.Net.Classify(a)
	}
	return address.ClassOf(a.Addr())
}

// refusal returns the error for a request to u, which is at this address.
func (n naming) refusal(h *host, u *url.URL, class address.Class, addr netip.Addr) *addressError {
	e := &addressError{what: n.what, from: n.from, to: redact.DisplayURL(u), namers: n.namers, class: class, addr: addr}
	if n.what == "" {
		e.to = h.name
	}
	return e
}

// checkLiteral refuses an address that can be classified without a DNS lookup.
func (h *host) checkLiteral(u *url.URL) error {
	named := h.naming(u)
	if class, addr := h.c.literal(u); class != 0 && !named.namers.MayName(class) {
		return named.refusal(h, u, class, addr)
	}
	return nil
}

// unestablished reports whether a connection of HTTP/2 ended before its first request. With TLS 1.3, a server tells
// only then that it requires a client's certificate, and net/http may see the end before it sees the alert that says
// so. It exports no such error: errClientConnNotEstablished in h2_bundle.go.
func unestablished(err error) bool {
	return err != nil && strings.Contains(err.Error(), "http2: client conn could not be established")
}

// roundTrip sends a request if the hosts that named its address may do so, and records the class of the address that
// responded.
func (h *host) roundTrip(req *http.Request) (*http.Response, error) {
	if err := h.checkLiteral(req.URL); err != nil {
		return nil, err
	}
	if h.c.Net == nil { // the caller's own transport
		return h.c.http.RoundTrip(req)
	}
	proxy, err := h.c.Net.proxy(req)
	if err != nil {
		return nil, err
	}
	proxied := proxy != nil
	var got atomic.Uint32
	ctx := req.Context()
	if !proxied {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if at := address.RemoteAddr(i.Conn.RemoteAddr()); at.IsValid() {
				got.Store(uint32(h.c.Net.Classify(at)))
			}
		}})
	}
	insecure := h.insecure && req.URL.Scheme == "https" &&
		strings.EqualFold(req.URL.Hostname(), (&url.URL{Host: h.addr}).Hostname())
	named := h.naming(req.URL)
	key := connKey{namers: named.namers, insecure: insecure, proxied: proxied}
	if h.certificates != nil && req.URL.Scheme == "https" {
		key.with, key.own = h.certificates, h.owns(req.URL) && h.certificates.HasOwn()
		if key.own && proxied && proxy.Scheme == "https" {
			// net/http would show the user's certificate to the proxy, too.
			return nil, fmt.Errorf("%w, which is not shown to a proxy with TLS: exempt %s from the proxy with NO_PROXY",
				ErrClientCertificate, h.name)
		}
	}
	resp, err := h.c.Net.transport(key).RoundTrip(req.WithContext(ctx))
	for again := 0; again < 5 && unestablished(err) && (req.Body == nil || req.Body == http.NoBody); again++ {
		resp, err = h.c.Net.transport(key).RoundTrip(req.WithContext(ctx))
	}
	if err != nil {
		var dial *addressError
		if errors.As(err, &dial) {
			refused := named.refusal(h, req.URL, dial.class, dial.addr)
			refused.rebound, refused.namers = dial.rebound, dial.namers
			return nil, refused
		}
		return nil, err
	}
	resp.Request = req
	if class := address.Class(got.Load()); class != 0 {
		h.mu.Lock()
		if _, known := h.responseClasses[origin(req.URL)]; known || len(h.responseClasses) <= limits.NamedHosts {
			h.responseClasses[origin(req.URL)] |= class
		}
		h.mu.Unlock()
	}
	return resp, nil
}
