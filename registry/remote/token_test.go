package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// TestTokenExpiresConcurrently: when a token expires, concurrent requests share one token request, and all succeed.
func TestTokenExpiresConcurrently(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann"})
	c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
	r := repositoryOf(t, c, p.host()+"/a/model", Pull)
	for round := 1; round <= 4; round++ {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := r.askFor("GET", fmt.Sprintf("blobs/%d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := p.tokenRequests(); got != round {
			t.Fatalf("%d token requests in round %d", got, round)
		}
		p.revoke()
	}
}

// TestTokenRenewedBeforeExpiry: a token is renewed before it expires, because a body in transfer could not be sent
// again.
func TestTokenRenewedBeforeExpiry(t *testing.T) {
	for _, test := range []struct {
		life, want int
		age        time.Duration
	}{
		{300, 1, 4 * time.Minute}, {300, 2, 295 * time.Second}, {0, 1, 45 * time.Second}, {0, 2, 55 * time.Second},
		{1, 1, 30 * time.Second},
	} {
		p := newAuthPeer(t, &authPeer{scheme: "Bearer", tokenLife: test.life})
		c := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
		r := repositoryOf(t, c, p.host()+"/a/model", Pull)
		wantSuccess(t, r, "GET", "blobs/x")
		for _, cr := range r.host.credentials {
			cr.expires = cr.expires.Add(-test.age)
		}
		wantSuccess(t, r, "GET", "blobs/x")
		if got := p.tokenRequests(); got != test.want {
			t.Errorf("a token valid for %d s, %s old: %d token requests, want %d", test.life, test.age, got, test.want)
		}
	}
}

func TestRegistryToken(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer"})
	p.tokens["mine"] = []string{""}
	c := authClient(t, Options{Keychain: rt.SingleKeychain{Hosts: []string{p.host()},
		Cfg: authn.AuthConfig{RegistryToken: "mine"}}})
	r := repositoryOf(t, c, p.host()+"/a/model", Push)
	wantSuccess(t, r, "GET", "blobs/x")
	p.revoke()
	_, err := r.askFor("GET", "blobs/x")
	if !errors.Is(err, ErrUnauthorized) || p.tokenRequests() != 0 {
		t.Errorf("%v after %d token requests", err, p.tokenRequests())
	}
}

func TestIdentityToken(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann", oauth2: true})
	with := func(token string) *Repository {
		c := authClient(t, Options{Keychain: rt.SingleKeychain{Hosts: []string{p.host()},
			Cfg: authn.AuthConfig{IdentityToken: token}}})
		return repositoryOf(t, c, p.host()+"/a/model", Push)
	}
	wantSuccess(t, with("refresh-me"), "GET", "blobs/x")
	if q := p.tokenQueries[0]; q.Get("grant_type") != "refresh_token" ||
		q.Get("scope") != "repository:a/model:pull,push" || q.Get("service") != "peer" {
		t.Errorf("token request %v", q)
	}
	_, err := with("wrong-one").askFor("GET", "blobs/x")
	if !errors.Is(err, ErrUnauthorized) {
		t.Error(err)
	}
	rt.CheckNoSecrets(t, err, "wrong-one")

	p.oauth2, p.user = false, "" // no OAuth 2.0, but anonymous tokens
	wantSuccess(t, with("refresh-me"), "GET", "blobs/x")
}

// TestTokenServerRedirects: when a token server redirects to another host, that host gets neither the password nor the
// identity token.
func TestTokenServerRedirects(t *testing.T) {
	other := newAuthPeer(t, &authPeer{scheme: "Bearer"})
	p := newAuthPeer(t, &authPeer{scheme: "Bearer", handler: func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path == "/token" {
			http.Redirect(w, req, other.URL+"/token", http.StatusTemporaryRedirect)
		}
		return req.URL.Path == "/token"
	}})
	for _, cfg := range []authn.AuthConfig{{Username: "ann", Password: "secret"}, {IdentityToken: "refresh-me"}} {
		c := authClient(t, Options{Keychain: rt.SingleKeychain{Hosts: []string{p.host(), other.host()}, Cfg: cfg}})
		if _, err := repositoryOf(t, c, p.host()+"/a/model", Pull).askFor("GET", "blobs/x"); err == nil {
			t.Error("no error")
		}
	}
	for _, req := range other.requests {
		if a := req.Header.Get("Authorization"); a != "" || req.Method != "GET" {
			t.Errorf("another host got %s with %q", req.Method, a)
		}
	}
}

// TestTokenExpiresDuringBody: if a body cannot be sent again, the request is interrupted and the next one uses a new
// token.
func TestTokenExpiresDuringBody(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann"})
	c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
	r := repositoryOf(t, c, p.host()+"/a/model", Push)
	wantSuccess(t, r, "HEAD", "blobs/x")
	p.revoke()
	patch := func() error {
		req, _ := r.Request(context.Background(), "PATCH", r.URL("blobs/uploads/1"),
			io.MultiReader(strings.NewReader("bytes")))
		_, err := r.responseBody(req)
		return err
	}
	if err := patch(); !errors.Is(err, ErrInterrupted) || !Temporary(err) {
		t.Fatalf("%v is not an ErrInterrupted", err)
	}
	if err := patch(); err != nil {
		t.Fatal(err)
	}
	// If a new token lacks the permission too, the error is final.
	p.handler = func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method == "PATCH" {
			w.Header().Set("WWW-Authenticate", p.challenge())
			w.WriteHeader(http.StatusUnauthorized)
		}
		return req.Method == "PATCH"
	}
	for range 3 {
		if err := patch(); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
	}
	if err := patch(); Temporary(err) || !errors.Is(err, ErrUnauthorized) {
		t.Errorf("%v is temporary or not an ErrUnauthorized", err)
	}
}

// TestTokenExpiresAtOnce: a token that expires before its first use is replaced once.
func TestTokenExpiresAtOnce(t *testing.T) {
	for _, unlucky := range []int{1, 2} {
		p := newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann"})
		p.handler = func(w http.ResponseWriter, req *http.Request) bool {
			if req.URL.Path != "/token" && len(p.tokenQueries) > 0 && len(p.tokenQueries) <= unlucky {
				clear(p.tokens)
			}
			return false
		}
		c := authClient(t, Options{Keychain: rt.PasswordKeychain("secret", p.host())})
		_, err := repositoryOf(t, c, p.host()+"/a/model", Push).askFor("GET", "blobs/x")
		if (err == nil) != (unlucky == 1) || err != nil && !errors.Is(err, ErrUnauthorized) || p.tokenRequests() != 2 {
			t.Errorf("%d tokens expire: %v after %d token requests", unlucky, err, p.tokenRequests())
		}
	}
}

// TestTokenExchangeCallerCanceled: other goroutines get a token even if the caller that requested it is canceled.
func TestTokenExchangeCallerCanceled(t *testing.T) {
	var n atomic.Int32
	began, gone := make(chan bool), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.URL.Path == "/token" && n.Add(1) == 1:
			close(began)
			<-gone
		case req.URL.Path == "/token":
			fmt.Fprint(w, `{"access_token":"t"}`)
		case req.Header.Get("Authorization") == "Bearer t":
			fmt.Fprint(w, "ok")
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+req.Host+`/token"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer s.Close()
	c := authClient(t, Options{Keychain: rt.AnonymousKeychain()})
	r := repositoryOf(t, c, strings.TrimPrefix(s.URL, "http://")+"/a/model", Pull)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		req, _ := r.Request(ctx, "GET", r.URL("blobs/x"), nil)
		if _, err := r.responseBody(req); !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled request: %v", err)
		}
	})
	<-began
	wg.Go(func() { wantSuccess(t, r, "GET", "blobs/y") })
	cancel()
	close(gone)
	wg.Wait()
}
