// Package address parses the server's address from INGOT_HOST or --host, for the server and its clients.
//
// An address is [scheme://]host[:port][/path]; every part is optional. The server listens on Listen and clients connect
// to URL, where an unspecified address becomes the loopback address: connecting to 0.0.0.0 fails on some systems.
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

// The default address.
const (
	DefaultHost = "127.0.0.1"
	DefaultPort = 11434
)

// Env is the environment variable with the address.
const Env = "INGOT_HOST"

// Address is a server's address.
type Address struct {
	Scheme string // http or https
	Host   string // a name or an IP address, without brackets
	Port   int
	Path   string // starts with a slash, or is empty
}

// FromEnv parses the value of a flag, or INGOT_HOST if the value is empty. See Parse.
func FromEnv(flag string) (Address, string) {
	if flag == "" {
		flag = os.Getenv(Env)
	}
	return Parse(flag)
}

// Parse parses an address. It replaces invalid parts by defaults and says so in a warning.
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
			warning = fmt.Sprintf("%q: the scheme is neither http nor https; using http", text)
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
			return a, fmt.Sprintf("%q: the port is not a number from 0 to 65535; using %d", text, a.Port)
		}
		a.Port = n
	}
	return a, warning
}

// splitPort splits a host from its port and removes brackets. An IPv6 address without brackets has no port.
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

// Listen returns the address to listen on: host:port.
func (a Address) Listen() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// Reachable returns the address for clients to connect to.
func (a Address) Reachable() Address {
	if ip, err := netip.ParseAddr(a.Host); err == nil && ip.IsUnspecified() {
		a.Host = DefaultHost
		if ip.Is6() {
			a.Host = "::1"
		}
	}
	return a
}

// URL returns the reachable address as a URL without a trailing slash.
func (a Address) URL() string {
	r := a.Reachable()
	return (&url.URL{Scheme: r.Scheme, Host: r.Listen(), Path: r.Path}).String()
}

// Loopback reports whether only this machine can reach the address. Of the host names, only localhost is known to be
// loopback.
func (a Address) Loopback() bool {
	if ip, err := netip.ParseAddr(a.Host); err == nil {
		return ip.IsLoopback()
	}
	return IsLocalhost(a.Host)
}

// IsLocalhost reports whether a host name means the local machine by definition (RFC 6761, 6.3).
func IsLocalhost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
