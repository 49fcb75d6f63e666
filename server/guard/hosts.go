package guard

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/wire"
)

// Hosts are patterns of Host headers. See ParseHosts.
type Hosts []hostPattern

// hostPattern is a name, all names in a domain, or all names; and a port or all ports.
type hostPattern struct {
	name string // in lower case; with inside: of the domain
	// inside accepts names in the domain, at any depth, and not the domain's own.
	inside bool
	any    bool
	port   string // "": any
}

func (p hostPattern) matches(name, port string) bool {
	if p.port != "" && p.port != port {
		return false
	}
	if p.inside {
		return strings.HasSuffix(name, "."+p.name)
	}
	return p.any || name == p.name
}

func (h Hosts) match(name, port string) bool {
	for _, p := range h {
		if p.matches(name, port) {
			return true
		}
	}
	return false
}

// ParseHosts parses patterns of Host headers: NAME, *.DOMAIN for the names in a domain, or * for all; each with :PORT
// for one port. The error says what is wrong with a pattern.
func ParseHosts(list []string) (Hosts, error) {
	var hosts Hosts
	for _, text := range list {
		p, err := parseHost(strings.ToLower(text))
		if err == nil && p.port == "*" {
			p.port = ""
		}
		if scheme, rest, isURL := strings.Cut(text, "://"); isURL && scheme != "" {
			rest, _, _ = strings.Cut(rest, "/")
			err = fmt.Errorf("a Host header has no scheme: write %s", wire.Clip(rest))
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", wire.Clip(text), err)
		}
		hosts = append(hosts, p)
	}
	return hosts, nil
}

// parseHost parses HOST or HOST:PORT. The port may be *.
func parseHost(text string) (p hostPattern, err error) {
	name := text
	if ip, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return hostPattern{name: ip.String()}, nil
	}
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		if name, p.port = text[:i], text[i+1:]; p.port != "*" && !isPort(p.port) {
			return p, fmt.Errorf("the port %q is not a number from 1 to 65535, or *", wire.Clip(p.port))
		}
	}
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		p.name = ip.String()
		return p, nil
	}
	if name == "*" {
		p.any = true
		return p, nil
	}
	p.name, p.inside = strings.CutPrefix(strings.TrimSuffix(name, "."), "*.")
	return p, checkName(p.name)
}

func isPort(text string) bool {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > 65535 {
			return false
		}
		n = 10*n + int(c-'0')
	}
	return n > 0 && n <= 65535
}

// checkName returns an error unless a text in lower case is a host name as clients send it.
func checkName(name string) error {
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case strings.Contains(label, "*"):
			return fmt.Errorf("a * may only stand for the whole name or its first labels, as in *.example.com")
		case label == "":
			return fmt.Errorf("it has no name, or one with an empty label")
		case strings.ContainsFunc(label, func(r rune) bool { return r >= 0x80 }):
			return fmt.Errorf("clients send names in ASCII: write the form that begins with xn--")
		case strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return fmt.Errorf("%q is not a host name", wire.Clip(name))
		}
	}
	return nil
}

// ownNames are the names of this machine.
func ownNames(listens string, hostname func() (string, error)) (own Hosts) {
	names := []string{listens}
	if name, err := hostname(); err == nil {
		names = append(names, name)
		if !strings.Contains(name, ".") {
			names = append(names, name+".local") // its name in multicast DNS
		}
	}
	for _, name := range names {
		if name != "" {
			own = append(own, hostPattern{name: strings.ToLower(strings.TrimSuffix(name, "."))})
		}
	}
	return own
}

// privateDomains are domains that the Internet's DNS does not have: of multicast DNS (RFC 6762), and reserved for
// private networks (ICANN, 2024).
var privateDomains = []string{".local", ".internal"}

// host reports whether a request's Host header is accepted, and whether it is surely this machine's own. This prevents
// DNS rebinding: a browser sends the name from its address bar, and anybody can point a name of their own at this
// machine. An IP address cannot be rebound. Names that the Internet's DNS cannot have, such as host.docker.internal or
// a service's name in a network of containers, are accepted, but are not own: pages that they serve are other origins.
func (g *Guard) host(r *http.Request) (accepted, own bool) {
	name, port := r.Host, "80"
	if r.TLS != nil {
		port = "443"
	}
	if h, p, err := net.SplitHostPort(r.Host); err == nil {
		name, port = h, p
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "" {
		return true, true // HTTP/1.0, which no browser uses
	}
	if _, err := netip.ParseAddr(name); err == nil || address.IsLocalhost(name) || g.hosts.match(name, port) {
		return true, true
	}
	accepted = !strings.Contains(name, ".")
	for _, domain := range privateDomains {
		accepted = accepted || strings.HasSuffix(name, domain)
	}
	return accepted && checkName(name) == nil, false
}
