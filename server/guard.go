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
)

// guard decides who may ask.
type guard struct {
	key     *[sha256.Size]byte // of the API key; nil: none is needed
	hosts   []string           // names that requests may call the server by
	origins []string
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

// admit answers a request that may not go on, and tells browsers what they may do.
func (g guard) admit(w http.ResponseWriter, r *http.Request) bool {
	if !g.knows(r.Host) {
		refuse(w, r, told{status: http.StatusForbidden, message: "the server is not called " + clip(r.Host) + "; --allow-host adds a name"})
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !g.allows(origin, r.Host) {
			refuse(w, r, told{status: http.StatusForbidden, message: "pages of " + clip(origin) + " may not ask; --allow-origin adds one"})
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
	if g.key != nil && !slices.Contains(open, r.URL.Path) && !page.Serves(r) && !g.unlocks(r.Header) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, r, told{status: http.StatusUnauthorized, message: "the server wants an API key: Authorization: Bearer KEY"})
		return false
	}
	return true
}

// knows tells whether a request's host is a name of the server. A browser sends the name that it was given: of a name that anybody may
// make mean this machine, the page is somebody else's. An IP address cannot be made to.
func (g guard) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if name == "" {
		return true // HTTP/1.0, which no browser speaks
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return address.IsLocalhost(name) || slices.Contains(g.hosts, strings.ToLower(strings.TrimSuffix(name, ".")))
}

// appSchemes are origins of programs on this machine that show pages of their own.
var appSchemes = []string{"app", "tauri", "vscode-webview", "vscode-file"}

// allows tells whether pages of an origin may ask: the server's own, those of this machine, and those that were named.
func (g guard) allows(origin, host string) bool {
	if slices.Contains(g.origins, "*") || slices.Contains(g.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" {
		return false // "null" is any page in a frame without rights
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

// unlocks tells whether a request brings the key, as OpenAI's clients do, or as Anthropic's. Some send both, one of them made up.
func (g guard) unlocks(h http.Header) bool {
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
