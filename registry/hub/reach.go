package hub

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"syscall"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/registry/address"
)

// proxy returns the proxy of a request, by the variables of the environment.
func proxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, errors.New("the proxy address in the environment is invalid") // err quotes the proxy's password
	}
	return u, nil
}

// namedBy is the context key of the classes of the hosts that redirected a request to another origin.
type namedBy struct{}

// checkDial refuses to connect to an address that is less public than the one that named it: a hub on the internet
// must not direct this machine to services of its own network.
func checkDial(ctx context.Context, _, at string, _ syscall.RawConn) error {
	by, _ := ctx.Value(namedBy{}).(address.Class)
	addr, err := netip.ParseAddrPort(at)
	if by == 0 || err != nil {
		return nil
	}
	if class := address.ClassOf(addr.Addr()); !by.MayName(class) {
		return errPrivate
	}
	return nil
}

var errPrivate = errors.New("the hub redirected to an address that is not public")

// restrict returns a request whose connection is refused if the hosts that named its address may not name it. Through
// a proxy, the connection is the proxy's, and only an address without a name can be refused.
func (c *Client) restrict(req *http.Request, by address.Class) (*http.Request, error) {
	if c.transport.Proxy != nil {
		switch through, err := c.transport.Proxy(req); {
		case err != nil:
			return nil, err
		case through != nil && !by.MayName(literal(req.URL)):
			return nil, errPrivate
		case through != nil:
			return req, nil
		}
	}
	at := origin(req.URL)
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { c.servers.add(at, i.Conn) },
	})
	return req.WithContext(context.WithValue(ctx, namedBy{}, by)), nil
}

// literal returns the class of an address without a name, and Public for others.
func literal(u *url.URL) address.Class {
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return address.ClassOf(addr)
	}
	if address.IsLoopback(u.Host) {
		return address.Loopback
	}
	return address.Public
}

// servers holds the classes of the servers that responded, by origin. A mirror in a private network may direct to
// others there.
type servers struct {
	mu      sync.Mutex
	classes map[string]address.Class
}

func (s *servers) add(at string, conn net.Conn) {
	addr := address.RemoteAddr(conn.RemoteAddr())
	if !addr.IsValid() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.classes == nil {
		s.classes = map[string]address.Class{}
	}
	if len(s.classes) >= limits.NamedHosts && s.classes[at] == 0 {
		return // the strictest class applies to it
	}
	s.classes[at] |= address.ClassOf(addr.Addr())
}

// named returns the classes of the hosts that led to an address: those of the hub, unless it is the same origin.
func (c *Client) named(from call, to *url.URL) address.Class {
	if origin(from.url) == origin(to) {
		return from.named
	}
	c.servers.mu.Lock()
	defer c.servers.mu.Unlock()
	class := c.servers.classes[origin(from.url)]
	if class == 0 { // through a proxy
		class = literal(from.url)
	}
	return from.named | class
}
