package guard

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/wire"
)

// Origins are patterns of origins of web pages. See ParseOrigins.
type Origins []originPattern

type originPattern struct {
	any    bool
	null   bool   // the origin "null"
	scheme string // in lower case
	host   hostPattern
}

// ParseOrigins parses patterns of origins: SCHEME://HOST[:PORT], whose host is a pattern as in ParseHosts and whose
// port may be *; null, the origin of files and sandboxed frames; or * for all. Without a port, only the scheme's
// default port matches. The error says what is wrong with a pattern.
func ParseOrigins(list []string) (Origins, error) {
	var origins Origins
	for _, text := range list {
		p, err := parseOrigin(strings.ToLower(text))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", wire.Clip(text), err)
		}
		origins = append(origins, p)
	}
	return origins, nil
}

func parseOrigin(text string) (p originPattern, err error) {
	switch text {
	case "*":
		return originPattern{any: true}, nil
	case "null":
		return originPattern{null: true}, nil
	}
	scheme, host, ok := strings.Cut(text, "://")
	switch {
	case !ok || scheme == "":
		return p, fmt.Errorf("an origin is SCHEME://HOST[:PORT], such as https://%s",
			wire.Clip(strings.TrimPrefix(text, "://")))
	case !isScheme(scheme):
		return p, fmt.Errorf("%q is not a scheme", wire.Clip(scheme))
	case host == "":
		return p, fmt.Errorf("it has no host: write %s://* for all", wire.Clip(scheme))
	case strings.Contains(host, "/"):
		host, _, _ = strings.Cut(host, "/")
		return p, fmt.Errorf("an origin has no path: write %s://%s", wire.Clip(scheme), wire.Clip(host))
	}
	p.scheme = scheme
	if p.host, err = parseHost(host); err != nil {
		return p, err
	}
	switch p.host.port {
	case "":
		p.host.port = defaultPort(scheme)
	case "*":
		p.host.port = ""
	}
	return p, nil
}

func isScheme(text string) bool {
	return 'a' <= text[0] && text[0] <= 'z' && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// defaultPort returns the port of origins without one. Schemes without ports have none.
func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return "none"
}

func (o Origins) match(origin string, u *url.URL) bool {
	for _, p := range o {
		switch {
		case p.any:
			return true
		case p.null:
			if origin == "null" {
				return true
			}
		case u != nil && u.Scheme == p.scheme:
			port := u.Port()
			if port == "" {
				port = defaultPort(u.Scheme)
			}
			if p.host.matches(strings.ToLower(u.Hostname()), port) {
				return true
			}
		}
	}
	return false
}

// appSchemes are origins of local programs that embed web pages.
var appSchemes = []string{"app", "tauri", "vscode-webview", "vscode-file"}

// allowsOrigin reports whether pages of an origin may send requests: those of this machine, those that the server
// serves itself under a name of its own, and those of --allow-origin.
func (g *Guard) allowsOrigin(origin, host string, own bool) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		u = nil // "null" is the origin of sandboxed frames of any page
	}
	if g.origins.match(origin, u) {
		return true
	}
	if u == nil {
		return false
	}
	if slices.Contains(appSchemes, u.Scheme) {
		return true
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if own && u.Host == host {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || address.IsLocalhost(u.Hostname())
}
