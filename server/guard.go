package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/ingotml/ingot/server/address"
	"github.com/ingotml/ingot/server/page"
	"github.com/ingotml/ingot/server/wire"
)

// guard controls access: Host header, Origin header and API key.
type guard struct {
	key      *[sha256.Size]byte // SHA-256 of the API key; nil: no key is required
	hosts    []string           // accepted Host headers, in lower case
	origins  []string           // additional allowed origins
	dialects wire.Dialects
	public   []string // paths that need no key; the page's files need none either
}

func newGuard(o Options) guard {
	g := guard{origins: o.Origins}
	for _, h := range append([]string{o.Host}, o.Hosts...) {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	if name, err := os.Hostname(); err == nil {
		g.hosts = append(g.hosts, strings.ToLower(name))
	}
	if o.APIKey != "" {
		sum := sha256.Sum256([]byte(o.APIKey))
		g.key = &sum
	}
	return g
}

// check responds to requests that are denied and to CORS preflight requests, and reports whether to go on.
func (g guard) check(w http.ResponseWriter, r *http.Request) bool {
	if !g.acceptsHost(r.Host) {
		g.dialects.Refuse(w, r, wire.Error{Status: http.StatusForbidden,
			Message: "host " + wire.Clip(r.Host) + " is not allowed; --allow-host adds it"})
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !g.allowsOrigin(origin, r.Host) {
			g.dialects.Refuse(w, r, wire.Error{Status: http.StatusForbidden,
				Message: "origin " + wire.Clip(origin) + " is not allowed; --allow-origin adds it"})
			return false
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "Retry-After")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS")
			if wanted := r.Header.Get("Access-Control-Request-Headers"); wanted != "" {
				h.Set("Access-Control-Allow-Headers", wanted)
			}
			h.Set("Access-Control-Max-Age", "3600")
			w.WriteHeader(http.StatusNoContent)
			return false
		}
	}
	if g.key != nil && !g.isPublic(r) && !page.Serves(r) && !g.hasKey(r.Header) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		g.dialects.Refuse(w, r, wire.Error{Status: http.StatusUnauthorized,
			Message: "the server requires an API key: Authorization: Bearer KEY"})
		return false
	}
	return true
}

// acceptsHost reports whether a Host header names this server. This prevents DNS rebinding: a browser sends the name
// from its address bar, and anybody can point a name of their own at this machine. An IP address cannot be rebound.
func (g guard) acceptsHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if name == "" {
		return true // HTTP/1.0, which no browser uses
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return address.IsLocalhost(name) || slices.Contains(g.hosts, strings.ToLower(strings.TrimSuffix(name, ".")))
}

// appSchemes are origins of local programs that embed web pages.
var appSchemes = []string{"app", "tauri", "vscode-webview", "vscode-file"}

// allowsOrigin reports whether pages of an origin may send requests: the server's own, those of this machine, and
// those of --allow-origin.
func (g guard) allowsOrigin(origin, host string) bool {
	if slices.Contains(g.origins, "*") || slices.Contains(g.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" {
		return false // "null" is the origin of sandboxed frames of any page
	}
	if slices.Contains(appSchemes, u.Scheme) {
		return true
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	if u.Host == host {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback() || address.IsLocalhost(u.Hostname())
}

// hasKey reports whether a request has the API key in OpenAI's or Anthropic's header. Some clients send both, one of
// them with a placeholder.
func (g guard) hasKey(h http.Header) bool {
	given := []string{h.Get("X-Api-Key")}
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		given = append(given, strings.TrimSpace(token))
	}
	right := 0
	for _, key := range given {
		sum := sha256.Sum256([]byte(key))
		right |= subtle.ConstantTimeCompare(sum[:], g.key[:])
	}
	return right == 1
}
