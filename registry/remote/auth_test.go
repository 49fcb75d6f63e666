package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

func TestNoAuthentication(t *testing.T) {
	p := newAuthPeer(t, &authPeer{})
	c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
	wantSuccess(t, repositoryOf(t, c, p.host()+"/a/model", Pull), "GET", "blobs/x")
	if diff := cmp.Diff([]string{""}, p.authorizations("/v2/a")); diff != "" {
		t.Errorf("credentials without a challenge: %s", diff)
	}
}

func TestBasic(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Basic", user: "ann"})
	c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
	r := repositoryOf(t, c, p.host()+"/a/model", Push)
	wantSuccess(t, r, "GET", "blobs/x")
	wantSuccess(t, r, "HEAD", "blobs/x")
}

func TestScopes(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer"})
	c := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
	wantSuccess(t, repositoryOf(t, c, p.host()+"/a/deep/model", Pull), "GET", "blobs/x")
	wantSuccess(t, repositoryOf(t, c, p.host()+"/a/deep/model:v1", Push, "b/base", "c/base"), "GET", "blobs/x")
	wantSuccess(t, repositoryOf(t, c, p.host()+"/a/deep/model", Pull), "GET", "blobs/y") // has its token already
	var got [][]string
	for _, q := range p.tokenQueries {
		got = append(got, q["scope"])
		if q.Get("service") != "peer" {
			t.Errorf("service %q", q.Get("service"))
		}
	}
	want := [][]string{
		{"repository:a/deep/model:pull"},
		{"repository:a/deep/model:pull,push", "repository:b/base:pull", "repository:c/base:pull"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestChallengeOfARequest: a registry with anonymous reads has no challenge for the ping, but one for a push. Its
// challenge may name additional scopes.
func TestChallengeOfARequest(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann", openPing: true, anonymousReads: true,
		scope: "repository:a/model:push,pull repository:shared:pull"})
	c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
	r := repositoryOf(t, c, p.host()+"/a/model", Push)
	wantSuccess(t, r, "GET", "blobs/x")
	if n := p.tokenRequests(); n != 0 {
		t.Errorf("%d token requests before a challenge", n)
	}
	wantSuccess(t, r, "POST", "blobs/uploads/")
	if diff := cmp.Diff([]string{"repository:a/model:pull,push", "repository:shared:pull"},
		p.tokenQueries[0]["scope"]); diff != "" {
		t.Error(diff)
	}
}

// TestWrongPassword: a wrong password is tried once. The error names the host and hides the password, even if the
// server quotes it.
func TestWrongPassword(t *testing.T) {
	for _, scheme := range []string{"Basic", "Bearer"} {
		p := newAuthPeer(t, &authPeer{scheme: scheme, user: "ann"})
		var events []error
		c := authClient(t, Options{Keychain: rt.PasswordKeychain("hunter2", p.host()),
			Warn: func(_ string, err error) { events = append(events, err) }})
		r := repositoryOf(t, c, p.host()+"/a/model", Pull)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := r.askFor("GET", "blobs/x")
				var auth *AuthError
				if !errors.As(err, &auth) || auth.Host != p.host() || !auth.Given || !errors.Is(err, ErrUnauthorized) {
					t.Errorf("%s: %v", scheme, err)
				}
				rt.CheckNoSecrets(t, err, "hunter2", p.basic(), "aHVudGVyMg", "YW5uOmh1bnRlcjI")
			})
		}
		wg.Wait()
		if len(events) != 0 {
			t.Errorf("events: %v", events)
		}
	}
}

func TestNoCredentials(t *testing.T) {
	for _, scheme := range []string{"Basic", "Bearer"} {
		p := newAuthPeer(t, &authPeer{scheme: scheme, user: "ann"})
		c := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
		_, err := repositoryOf(t, c, p.host()+"/a/model", Pull).askFor("GET", "blobs/x")
		var auth *AuthError
		if !errors.As(err, &auth) || auth.Given {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// TestBrokenKeychain: a keychain that fails, for example because a helper is not installed, does not prevent anonymous
// reads.
func TestBrokenKeychain(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer"})
	var warned []string
	c := authClient(t,
		Options{Keychain: broken{}, Warn: func(host string, err error) { warned = append(warned, host+": "+err.Error()) }})
	wantSuccess(t, repositoryOf(t, c, p.host()+"/a/model", Pull), "GET", "blobs/x")
	if want := []string{p.host() + ": credentials cannot be read: no helper"}; !cmp.Equal(warned, want) {
		t.Errorf("warned of %v", warned)
	}
}

type broken struct{}

func (broken) Resolve(authn.Resource) (authn.Authenticator, error) {
	return nil, errors.New("no helper")
}

func TestRealm(t *testing.T) {
	c := authClient(t, Options{})
	for _, test := range []struct{ host, realm, err string }{
		{"ghcr.io", "https://ghcr.io/token", ""},
		{"ghcr.io", "https://auth.example.com/token?x=y", ""},
		{"ghcr.io", "http://ghcr.io/token", "without TLS"},
		{"ghcr.io", "https://169.254.169.254/latest", "from a public to a private address"},
		{"ghcr.io", "https://10.1.2.3/token", "from a public to a private address"},
		{"ghcr.io", "https://[::ffff:127.0.0.1]:80/", "from a public to a private address"},
		{"ghcr.io", "https://localhost/token", "from a public to a private address"},
		{"10.1.2.3:5000", "https://10.1.2.4/token", ""},
		{"localhost:5000", "http://localhost:5001/token", ""},
		{"ghcr.io", "", "no token server"},
		{"ghcr.io", "/token", ""},
		{"ghcr.io", "//auth.example.com/token", ""},
		{"ghcr.io", "//localhost/token", "from a public to a private address"},
		{"ghcr.io", "file:///etc/passwd", "no token server"},
		{"ghcr.io", "https://%zz/", "no token server"},
	} {
		h, err := c.newHost(test.host)
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{"Www-Authenticate": {fmt.Sprintf("Bearer realm=%q", test.realm)}}
		_, err = h.realm(offerOf(header).bearer)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s names %s: %v, want %q", test.host, test.realm, err, test.err)
		}
	}
}

// TestCredentialsNotForwarded: credentials go to their host and port only. Neither redirects nor upload locations take
// them elsewhere.
func TestCredentialsNotForwarded(t *testing.T) {
	for _, scheme := range []string{"Basic", "Bearer"} {
		other := newAuthPeer(t, &authPeer{anonymousReads: true, openPing: true, scheme: scheme})
		p := newAuthPeer(t, &authPeer{scheme: scheme, user: "ann"})
		p.handler = func(w http.ResponseWriter, req *http.Request) bool {
			if strings.Contains(req.URL.Path, "moved") && req.Header.Get("Authorization") != "" {
				http.Redirect(w, req, other.URL+"/v2/a/model/blobs/there", http.StatusTemporaryRedirect)
				return true
			}
			return false
		}
		c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host(), other.host())})
		r := repositoryOf(t, c, p.host()+"/a/model", Push)
		req, _ := r.Request(context.Background(), "GET", r.URL("blobs/moved"), nil)
		req.Header.Set("Range", "bytes=1-")
		if got, err := r.responseBody(req); err != nil || got != "ok" {
			t.Errorf("%q, %v", got, err)
		}
		u, _ := r.URL().Parse(other.URL + "/v2/a/model/blobs/upload?digest=x")
		req, _ = r.Request(context.Background(), "PUT", u, strings.NewReader("x"))
		req.Header.Set("Authorization", "Bearer from-before")
		if _, err := r.responseBody(req); err == nil && scheme == "Bearer" {
			t.Error("the other host's challenge was answered")
		}
		if len(other.requests) != 2 {
			t.Fatalf("%d requests to the other host", len(other.requests))
		}
		for _, req := range other.requests {
			if a := req.Header.Get("Authorization"); a != "" {
				t.Errorf("%s got %q", req.URL, a)
			}
		}
		if got := other.requests[0].Header.Get("Range"); got != "bytes=1-" {
			t.Errorf("Range %q", got)
		}
	}
}

func TestHostNames(t *testing.T) {
	c := authClient(t, Options{})
	for _, test := range []struct{ name, url string }{
		{"docker.io/llama", "https://index.docker.io/v2/library/llama/blobs/x"},
		{"docker.io/me/llama", "https://index.docker.io/v2/me/llama/blobs/x"},
		{"GHCR.io/me/deep/llama", "https://ghcr.io/v2/me/deep/llama/blobs/x"},
		{"localhost:5000/llama", "http://localhost:5000/v2/llama/blobs/x"},
		{"[::1]:5000/llama", "http://[::1]:5000/v2/llama/blobs/x"},
		{"127.0.0.2:5000/llama", "http://127.0.0.2:5000/v2/llama/blobs/x"},
		{"10.0.0.2:5000/llama", "https://10.0.0.2:5000/v2/llama/blobs/x"},
	} {
		if got := repositoryOf(t, c, test.name, Pull).URL("blobs", "x").String(); got != test.url {
			t.Errorf("%s is at %s, want %s", test.name, got, test.url)
		}
	}
	for _, opts := range []Options{{Insecure: true}, {PlainHTTP: true}} {
		c := authClient(t, opts)
		if got := repositoryOf(t, c, "localhost:5000/a", Pull).host.scheme; (got == "http") != opts.PlainHTTP {
			t.Errorf("%+v: %s", opts, got)
		}
	}
}

func TestOrigin(t *testing.T) {
	c := authClient(t, Options{})
	r := repositoryOf(t, c, "registry.example.com/a", Pull)
	for _, test := range []struct {
		url  string
		want bool
	}{
		{"https://registry.example.com/v2/", true}, {"https://registry.example.com:443/v2/", true},
		{"https://Registry.Example.com/", true},
		{"https://registry.example.com:444/v2/", false}, {"http://registry.example.com/v2/", false},
		{"http://registry.example.com:443/", false},
		{"https://registry.example.com.evil.org/", false}, {"https://evil.org/registry.example.com", false},
		{"https://registry.example.com@evil.org/", false},
	} {
		u, err := r.URL().Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.host.owns(u); got != test.want {
			t.Errorf("%s: %v", test.url, got)
		}
	}
}
