// Package address reads where the server is: the text of INGOT_HOST or --host, for the one who listens and for those who ask.
//
// A text is [scheme://]host[:port][/path], every part of which may be left out. The server listens on Listen; everybody else asks URL, in
// which an address that means all of this machine's has become the loopback one: connecting to 0.0.0.0 fails on some systems.
package address

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// The default.
const (
	DefaultHost = "127.0.0.1"
	DefaultPort = 11434
)

// Env is the variable that has the address.
const Env = "INGOT_HOST"

// Address is where the server is.
type Address struct {
	Scheme string // http or https
	Host   string // a name or an IP address, without brackets
	Port   int
	Path   string // begins with a slash, or is empty
}

// FromEnv reads the text of a flag, or where it is empty that of the environment; see Parse.
func FromEnv(flag string) (Address, string) {
	if flag == "" {
		flag = os.Getenv(Env)
	}
	return Parse(flag)
}

// Parse reads an address. What cannot be meant is replaced by the default, and the warning says so.
func Parse(text string) (a Address, warning string) {
	text = strings.Trim(strings.TrimSpace(text), `"'`)
	a = Address{Scheme: "http", Host: DefaultHost, Port: DefaultPort}
	rest := text
	if scheme, after, ok := strings.Cut(text, "://"); ok {
		rest = after
		switch a.Scheme = strings.ToLower(scheme); a.Scheme {
		case "http":
			a.Port = 80
		case "https":
			a.Port = 443
		default:
			a.Scheme = "http"
			warning = fmt.Sprintf("%q: the scheme is neither http nor https; http is taken", text)
		}
	}
	rest, path, _ := strings.Cut(rest, "/")
	if path = strings.TrimRight(path, "/"); path != "" {
		a.Path = "/" + path
	}
	host, port, found := splitPort(rest)
	if host != "" {
		a.Host = host
	}
	if found {
		n, err := strconv.Atoi(port)
		if err != nil || n < 0 || n > 65535 {
			return a, fmt.Sprintf("%q: the port is no number from 0 to 65535; %d is taken", text, a.Port)
		}
		a.Port = n
	}
	return a, warning
}

// splitPort takes a port off a host, whose brackets go too. An IPv6 address without brackets has no port.
func splitPort(s string) (host, port string, found bool) {
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return ip.String(), "", false
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return strings.Trim(s, "[]"), "", false
	}
	return strings.Trim(s[:i], "[]"), s[i+1:], true
}

// Listen is the address to listen on: host:port.
func (a Address) Listen() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// Reachable is the address that clients ask.
func (a Address) Reachable() Address {
	if ip, err := netip.ParseAddr(a.Host); err == nil && ip.IsUnspecified() {
		a.Host = DefaultHost
		if ip.Is6() {
			a.Host = "::1"
		}
	}
	return a
}

// URL is the reachable address as clients write it, without a slash at its end.
func (a Address) URL() string {
	r := a.Reachable()
	return (&url.URL{Scheme: r.Scheme, Host: r.Listen(), Path: r.Path}).String()
}

// Loopback reports whether only this machine reaches the address. A name but localhost may mean anything.
func (a Address) Loopback() bool {
	if ip, err := netip.ParseAddr(a.Host); err == nil {
		return ip.IsLoopback()
	}
	return IsLocalhost(a.Host)
}

// IsLocalhost reports whether a host name means this machine wherever it is asked (RFC 6761, 6.3).
func IsLocalhost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
