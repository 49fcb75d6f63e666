package remote

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// authPeer is a registry with its own token server. It responds "ok" to authorized requests.
type authPeer struct {
	*httptest.Server
	scheme         string                                              // of its challenge: Basic, Bearer, or none
	realm          string                                              // empty: its own token server
	scope          string                                              // in its challenges
	openPing       bool                                                // GET /v2/ requires no authentication
	anonymousReads bool                                                // GET and HEAD require no authentication
	user           string                                              // whose password is "secret"
	tokenLife      int                                                 // expires_in of tokens, in seconds
	oauth2         bool                                                // accepts identity tokens
	handler        func(w http.ResponseWriter, req *http.Request) bool // runs first; false: it did not respond

	mu           sync.Mutex
	tokens       map[string][]string // scopes of each valid token
	tokenQueries []url.Values        // of requests to the token server
	requests     []*http.Request
}

func newAuthPeer(t *testing.T, p *authPeer) *authPeer {
	t.Helper()
	p.tokens = map[string][]string{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *authPeer) host() string { return strings.TrimPrefix(p.URL, "http://") }

func (p *authPeer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, req)
	if p.handler != nil && p.handler(w, req) {
		return
	}
	auth := req.Header.Get("Authorization")
	switch {
	case req.URL.Path == "/token":
		p.token(w, req)
	case req.URL.Path == "/v2/" && p.openPing:
	case p.anonymousReads && (req.Method == http.MethodGet || req.Method == http.MethodHead) && req.URL.Path != "/v2/":
		fmt.Fprint(w, "ok")
	case p.scheme == "Bearer" && p.tokens[strings.TrimPrefix(auth, "Bearer ")] != nil,
		p.scheme == "Basic" && auth == p.basic(), p.scheme == "":
		fmt.Fprint(w, "ok")
	default:
		w.Header().Set("WWW-Authenticate", p.challenge())
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED","message":"not with %s"}]}`, auth)
	}
}

func (p *authPeer) challenge() string {
	if p.scheme == "Basic" {
		return `Basic realm="here"`
	}
	realm := p.realm
	if realm == "" {
		realm = p.URL + "/token"
	}
	c := fmt.Sprintf(`Bearer realm="%s",service="peer"`, realm)
	if p.scope != "" {
		c += fmt.Sprintf(`,scope="%s"`, p.scope)
	}
	return c
}

func (p *authPeer) basic() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(p.user+":secret"))
}

func (p *authPeer) token(w http.ResponseWriter, req *http.Request) {
	req.ParseForm()
	p.tokenQueries = append(p.tokenQueries, req.Form)
	scopes := req.Form["scope"]
	switch auth := req.Header.Get("Authorization"); {
	case req.Method == http.MethodPost:
		if !p.oauth2 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if req.PostForm.Get("refresh_token") != "refresh-me" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"no user has %s"}`, req.PostForm.Get("refresh_token"))
			return
		}
		scopes = strings.Fields(req.PostForm.Get("scope"))
	case p.user != "" && auth != p.basic():
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"details":"incorrect: %s"}`, auth)
		return
	}
	t := fmt.Sprintf("token-%d", len(p.tokenQueries))
	p.tokens[t] = append(scopes, "")
	fmt.Fprintf(w, `{"token":%q,"expires_in":%d}`, t, p.tokenLife)
}

// revoke invalidates all tokens.
func (p *authPeer) revoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.tokens)
}

// tokenRequests returns the number of requests to the token server.
func (p *authPeer) tokenRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tokenQueries)
}

// authorizations lists the Authorization headers of the requests whose path has this prefix.
func (p *authPeer) authorizations(path string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for _, r := range p.requests {
		if strings.HasPrefix(r.URL.Path, path) {
			list = append(list, r.Header.Get("Authorization"))
		}
	}
	return list
}
