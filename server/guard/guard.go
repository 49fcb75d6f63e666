// Package guard decides which requests a server accepts, before anything reads them.
//
// Contract:
//   - A Host header must name this server, so that a web page cannot reach it under a name of the page's own: see
//     [Hosts].
//   - An Origin header must be this machine's, a local program's, or allowed: see [Origins].
//   - A server with a key responds to requests without it only on public paths.
//   - A Guard is not modified and safe for concurrent use.
package guard

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"os"
	"strings"

	"github.com/ingotml/ingot/server/wire"
)

// Options configure a guard.
type Options struct {
	Host    string // the host name that the server listens on
	Hosts   Hosts  // additional Host headers to accept
	Origins Origins
	APIKey  string // required of every request; "": none
}

// Guard checks requests.
type Guard struct {
	key     *[sha256.Size]byte // SHA-256 of the API key; nil: no key is required
	hosts   Hosts
	origins Origins
}

// New returns a guard.
func New(o Options) *Guard {
	g := &Guard{hosts: ownNames(o.Host, os.Hostname), origins: o.Origins}
	g.hosts = append(g.hosts, o.Hosts...)
	if o.APIKey != "" {
		sum := sha256.Sum256([]byte(o.APIKey))
		g.key = &sum
	}
	return g
}

// Check responds to requests that are denied and to CORS preflight requests, and reports whether to go on. public
// requests need no key. refuse sends an error.
func (g *Guard) Check(w http.ResponseWriter, r *http.Request, public bool, refuse func(wire.Error)) bool {
	accepted, own := g.host(r)
	if !accepted {
		refuse(wire.Error{Status: http.StatusForbidden,
			Message: "host " + wire.Clip(r.Host) + " is not allowed; --allow-host adds it"})
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !g.allowsOrigin(origin, r.Host, own) {
			refuse(wire.Error{Status: http.StatusForbidden,
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
	if g.key != nil && !public && !g.hasKey(r.Header) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(wire.Error{Status: http.StatusUnauthorized,
			Message: "the server requires an API key: Authorization: Bearer KEY"})
		return false
	}
	return true
}

// hasKey reports whether a request has the API key in OpenAI's or Anthropic's header. Some clients send both, one of
// them with a placeholder.
func (g *Guard) hasKey(h http.Header) bool {
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
