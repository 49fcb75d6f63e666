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
	"net/http"
	"os"
	"strings"

	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/wire"
)

// Options configure a guard.
type Options struct {
	Host    string // the host name that the server listens on
	Hosts   Hosts  // additional Host headers to accept
	Origins Origins
	Keys    *keys.Keys // one of them is required of every request; nil: none
}

// Guard checks requests.
type Guard struct {
	keys    *keys.Keys
	hosts   Hosts
	origins Origins
}

// New returns a guard.
func New(o Options) *Guard {
	return &Guard{hosts: append(ownNames(o.Host, os.Hostname), o.Hosts...), origins: o.Origins, keys: o.Keys}
}

// Check responds to requests that are denied and to CORS preflight requests, and reports whether to go on. public
// requests need no key. refuse sends an error. key is the request's, or nil.
func (g *Guard) Check(w http.ResponseWriter, r *http.Request, public bool,
	refuse func(wire.Error)) (key *keys.Key, ok bool) {
	accepted, own := g.host(r)
	if !accepted {
		refuse(wire.Error{Status: http.StatusForbidden,
			Message: "host " + wire.Clip(r.Host) + " is not allowed; --allow-host adds it"})
		return nil, false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !g.allowsOrigin(origin, r.Host, own) {
			refuse(wire.Error{Status: http.StatusForbidden,
				Message: "origin " + wire.Clip(origin) + " is not allowed; --allow-origin adds it"})
			return nil, false
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
			return nil, false
		}
	}
	if g.keys != nil {
		key = g.keys.Find(given(r.Header)...)
	}
	if g.keys != nil && key == nil && !public {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(wire.Error{Status: http.StatusUnauthorized,
			Message: "the server requires an API key: Authorization: Bearer KEY"})
		return nil, false
	}
	return key, true
}

// given returns the keys in OpenAI's and Anthropic's headers. Some clients send both, one of them with a placeholder.
func given(h http.Header) []string {
	list := []string{h.Get("X-Api-Key")}
	if scheme, token, ok := strings.Cut(h.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		list = append(list, strings.TrimSpace(token))
	}
	return list
}
