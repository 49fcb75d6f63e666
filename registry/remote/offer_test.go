package remote

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// TestOffer: challenges as registries write them, and as they should not.
func TestOffer(t *testing.T) {
	realm := map[string]string{"realm": "https://a/t", "service": "s"}
	for _, c := range []struct {
		headers []string
		bearer  map[string]string
		basic   bool
	}{
		{[]string{`Bearer realm="https://a/t",service="s"`}, realm, false},
		{[]string{`bearer   realm = "https://a/t" , SERVICE="s"`}, realm, false},
		{[]string{`Bearer realm=https://a/t,service=s`}, realm, false},
		{[]string{`Basic realm="x"`, `Bearer realm="https://a/t",service="s"`}, realm, true},
		{[]string{`Bearer realm="https://a/t",service="s"`, `Basic`}, realm, true},
		{[]string{`Basic realm="x", Bearer realm="https://a/t",service="s"`}, realm, true},
		{[]string{`Bearer realm="https://a/t",service="s",Basic realm="x"`}, realm, true},
		{[]string{`Basic, Bearer realm="https://a/t", service="s"`}, realm, true},
		{[]string{`Negotiate`, `NTLM, Bearer realm="https://a/t",service="s"`}, realm, false},
		{[]string{`Negotiate abc==, Bearer realm="https://a/t",service="s"`}, realm, false},
		{[]string{`Digest realm="Bearer realm=\"https://evil/\"", Bearer realm="https://a/t",service="s"`}, realm, false},
		{[]string{`Bearer realm="https://a/t",service="s"`, `Bearer realm="https://b/t"`}, realm, false},
		{[]string{`Bearer realm="https://a/t",scope="repository:a:pull,push",service="s"`},
			map[string]string{"realm": "https://a/t", "scope": "repository:a:pull,push", "service": "s"}, false},
		// A comma without quotes does not take the parameters after it away.
		{[]string{`Bearer realm="https://a/t",scope=repository:a:pull,push,service="s"`},
			map[string]string{"realm": "https://a/t", "scope": "repository:a:pull", "service": "s"}, false},
		{[]string{`Bearer realm="https://a/t`}, map[string]string{"realm": "https://a/t"}, false},
		{[]string{`BASIC`}, nil, true},
		{[]string{`Bearer`}, map[string]string{}, false},
		{[]string{`Digest realm="x"`}, nil, false},
		{[]string{``, `,,`, `"`, `=`, `==,"="`, "\t", `\`}, nil, false},
		{nil, nil, false},
	} {
		header := http.Header{}
		for _, value := range c.headers {
			header.Add("WWW-Authenticate", value)
		}
		got := offerOf(header)
		if got == nil {
			got = &offer{}
		}
		if diff := cmp.Diff(c.bearer, got.bearer); diff != "" || got.basic != c.basic {
			t.Errorf("%q: basic %v, %s", c.headers, got.basic, diff)
		}
	}
}

// TestBasicAndBearer: a registry that offers both gets a token, also anonymously. If it issues none, or does not accept
// it, it gets the password. If it accepts neither, that is one error.
func TestBasicAndBearer(t *testing.T) {
	for _, c := range []struct {
		what     string
		password string // empty: no user
		issues   int    // status of the token server
		accepts  string // scheme
		want     bool
	}{
		{"anonymous", "", 200, "Bearer", true},
		{"a user", "secret", 200, "Bearer", true},
		{"a user, no token server", "secret", 404, "Basic", true},
		{"a user, refused by the token server", "secret", 401, "Basic", true},
		{"a user, whose token is refused", "secret", 200, "Basic", true},
		{"a user, both refused", "secret", 401, "none", false},
		{"a user, token and password refused", "secret", 200, "none", false},
		{"anonymous, no token server", "", 404, "Basic", false},
	} {
		for _, order := range [][]string{{"Basic", "Bearer"}, {"Bearer", "Basic"}} {
			var requests int
			p := newAuthPeer(t, &authPeer{})
			p.handler = func(w http.ResponseWriter, req *http.Request) bool {
				scheme, _, _ := strings.Cut(req.Header.Get("Authorization"), " ")
				switch {
				case req.URL.Path == "/token" && c.issues == 200:
					fmt.Fprint(w, `{"token":"t"}`)
				case req.URL.Path == "/token":
					w.WriteHeader(c.issues)
				case scheme == c.accepts:
					return false
				default:
					requests++
					for _, scheme := range order {
						w.Header().Add("WWW-Authenticate", map[string]string{"Basic": `Basic realm="x"`,
							"Bearer": `Bearer realm="` + p.URL + `/token"`}[scheme])
					}
					w.WriteHeader(401)
				}
				return true
			}
			c0 := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
			if c.password != "" {
				c0 = authClient(t, Options{Keychain: rt.PasswordKeychain(c.password, p.host())})
			}
			_, err := repositoryOf(t, c0, p.host()+"/a/model", Push).askFor("GET", "blobs/x")
			if (err == nil) != c.want || err != nil && c.issues != 404 && !errors.Is(err, ErrUnauthorized) {
				t.Errorf("%s, %v: %v", c.what, order, err)
			}
			if requests > maxRounds+1 {
				t.Errorf("%s, %v: refused %d times", c.what, order, requests)
			}
		}
	}
}

// TestExpiresIn: a token's life in any form.
func TestExpiresIn(t *testing.T) {
	for text, want := range map[string]seconds{`300`: 300, `"300"`: 300, `300.5`: 300, `"3.6e3"`: 3600, `null`: 0, `-5`: 0,
		`"soon"`: 0, `{}`: 0, `true`: 0, `""`: 0, `1e400`: 1 << 30, `99999999999999999999`: 1 << 30, `"NaN"`: 0} {
		p := newAuthPeer(t, &authPeer{scheme: "Bearer"})
		p.handler = func(w http.ResponseWriter, req *http.Request) bool {
			if req.URL.Path == "/token" {
				p.tokens["t"] = []string{""}
				fmt.Fprintf(w, `{"token":"t","access_token":null,"issued_at":"2020-01-01T00:00:00Z","expires_in":%s}`, text)
			}
			return req.URL.Path == "/token"
		}
		r := repositoryOf(t, authClient(t, Options{Keychain: rt.AnonymousKeychain()}), p.host()+"/a/model", Pull)
		wantSuccess(t, r, "GET", "blobs/x")
		wantSuccess(t, r, "GET", "blobs/y")
		var s seconds
		if err := s.UnmarshalJSON([]byte(text)); s != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", text, s, err, want)
		}
	}
}

// TestRelativeRealm: a token server's address may be relative to the registry's, also with a query.
func TestRelativeRealm(t *testing.T) {
	for _, realm := range []string{"/token", "/token?account=x", "../token"} {
		p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann", realm: realm})
		c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
		wantSuccess(t, repositoryOf(t, c, p.host()+"/a/model", Pull), "GET", "blobs/x")
		if strings.Contains(realm, "?") && p.tokenQueries[0].Get("account") != "x" {
			t.Errorf("%s: %v", realm, p.tokenQueries[0])
		}
	}
}

// TestExpiredCredentials: public content is read without stored credentials that are refused, with one warning. What is
// not public, a push, and credentials for one command end in the refusal.
func TestExpiredCredentials(t *testing.T) {
	const advice = "were refused, so the content is read without any"
	for _, c := range []struct {
		what    string
		scheme  string
		token   int // status of the token server for the user
		refusal int // status of the registry for the user, where it issues a token
		public  bool
		actions string
		strict  bool
		want    error // nil: success
	}{
		{"a pull", "Bearer", 401, 0, true, Pull, false, nil},
		{"a pull, forbidden", "Bearer", 403, 0, true, Pull, false, nil},
		{"a pull, a token that is refused", "Bearer", 200, 401, true, Pull, false, nil},
		{"a pull, a token that is forbidden", "Bearer", 200, 403, true, Pull, false, nil},
		{"a pull, a password", "Basic", 0, 401, true, Pull, false, nil},
		{"a pull, a password, forbidden", "Basic", 0, 403, true, Pull, false, nil},
		{"strict", "Bearer", 401, 0, true, Pull, true, ErrSkipped},
		{"a private repository", "Bearer", 401, 0, false, Pull, false, ErrUnauthorized},
		{"a private repository, forbidden", "Bearer", 200, 403, false, Pull, false, ErrUnauthorized},
		{"a private repository, a password", "Basic", 0, 401, false, Pull, false, ErrUnauthorized},
		{"a push", "Bearer", 401, 0, true, Push, false, ErrUnauthorized},
		{"a push, a password", "Basic", 0, 401, true, Push, false, ErrUnauthorized},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			p := newAuthPeer(t, &authPeer{scheme: c.scheme})
			anonymous := map[string]bool{}
			p.handler = func(w http.ResponseWriter, req *http.Request) bool {
				header := req.Header.Get("Authorization")
				switch {
				case req.URL.Path == "/token" && header != "":
					w.WriteHeader(c.token)
					fmt.Fprint(w, `{"token":"users"}`)
				case req.URL.Path == "/token":
					anonymous["Bearer none"] = true
					fmt.Fprint(w, `{"token":"none"}`)
				case req.URL.Path != "/v2/" && c.public && (anonymous[header] || header == "" && c.scheme == "Basic"):
					fmt.Fprint(w, "ok")
				case header == "Bearer users" || strings.HasPrefix(header, "Basic "):
					w.Header().Set("WWW-Authenticate", p.challenge())
					w.WriteHeader(c.refusal)
				default:
					w.Header().Set("WWW-Authenticate", p.challenge())
					w.WriteHeader(401)
				}
				return true
			}
			var warned []string
			client := authClient(t, Options{Keychain: rt.PasswordKeychain("hunter2", p.host()), Strict: c.strict,
				Warn: func(_ string, err error) { warned = append(warned, err.Error()) }})
			r := repositoryOf(t, client, p.host()+"/a/model", c.actions)
			for range 2 {
				_, err := r.askFor(method, "blobs/x")
				if c.want == nil && err != nil || !errors.Is(err, c.want) || Temporary(err) {
					t.Errorf("%s, %s: %v, want %v", c.what, method, err, c.want)
				}
				if c.want == ErrUnauthorized && method == "GET" && !strings.Contains(err.Error(), "rejected") && c.refusal != 403 {
					t.Errorf("%s: %v", c.what, err)
				}
			}
			if (len(warned) == 1 && strings.Contains(warned[0], advice)) != (c.want == nil) {
				t.Errorf("%s, %s: warned of %q", c.what, method, warned)
			}
			if n := len(p.requests); n > 12 {
				t.Errorf("%s, %s: %d requests", c.what, method, n)
			}
		}
	}
}

// TestNoChallenge: a token that expired is renewed also if a proxy has dropped the challenge. One that is refused at
// once is not.
func TestNoChallenge(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann"})
	refuse := false
	p.handler = func(w http.ResponseWriter, req *http.Request) bool {
		known := p.tokens[strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")] != nil
		if strings.HasPrefix(req.URL.Path, "/v2/a/") && (refuse || !known) {
			w.WriteHeader(401)
			return true
		}
		return false
	}
	c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
	r := repositoryOf(t, c, p.host()+"/a/model", Push)
	wantSuccess(t, r, "GET", "blobs/x")
	p.revoke()
	wantSuccess(t, r, "GET", "blobs/y")
	refuse = true
	if _, err := r.askFor("GET", "blobs/z"); !errors.Is(err, ErrUnauthorized) || p.tokenRequests() > 4 {
		t.Errorf("%v after %d token requests", err, p.tokenRequests())
	}
}

// TestForbiddenOnce: a 403 to credentials that were accepted before is not about the credentials.
func TestForbiddenOnce(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann"})
	p.handler = func(w http.ResponseWriter, req *http.Request) bool {
		if strings.Contains(req.URL.Path, "referrers") {
			w.WriteHeader(403)
		}
		return strings.Contains(req.URL.Path, "referrers")
	}
	c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
	r := repositoryOf(t, c, p.host()+"/a/model", Pull)
	wantSuccess(t, r, "GET", "blobs/x")
	if _, err := r.askFor("GET", "referrers/x"); !errors.Is(err, ErrUnauthorized) {
		t.Error(err)
	}
	wantSuccess(t, r, "GET", "blobs/y")
	if slices.Contains(p.authorizations("/v2/a"), "") {
		t.Error("a request without credentials")
	}
}

// TestExpiredIdentityToken: OAuth 2.0 refuses an expired identity token with 400.
func TestExpiredIdentityToken(t *testing.T) {
	for _, actions := range []string{Pull, Push} {
		p := newAuthPeer(t, &authPeer{scheme: "Bearer"})
		p.handler = func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method == "POST" {
				w.WriteHeader(400)
				fmt.Fprint(w, `{"error":"invalid_grant","error_description":"refresh token expired"}`)
			}
			return req.Method == "POST"
		}
		c := authClient(t, Options{Keychain: rt.SingleKeychain{Hosts: []string{p.host()},
			Cfg: authn.AuthConfig{IdentityToken: "old-one"}}})
		_, err := repositoryOf(t, c, p.host()+"/a/model", actions).askFor("GET", "blobs/x")
		if (err == nil) != (actions == Pull) {
			t.Errorf("%s: %v", actions, err)
		}
		if actions == Push && (!errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), "refresh token expired")) {
			t.Error(err)
		}
	}
}
