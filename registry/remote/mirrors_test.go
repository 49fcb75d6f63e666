package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// site is a registry with fixed responses by path. It logs its requests.
type site struct {
	*httptest.Server
	mu     sync.Mutex
	has    map[string]string
	status int // of every response, if not 0
	log    []string
}

func newSite(t *testing.T, has map[string]string) *site {
	s := &site{has: has}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/v2/" {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, req.Method+" "+req.URL.Path)
		text, ok := s.has[req.URL.Path]
		switch {
		case s.status != 0:
			w.WriteHeader(s.status)
		case ok || req.Method == "POST":
			fmt.Fprint(w, text)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) host() string { return strings.TrimPrefix(s.URL, "http://") }

func (s *site) wantLog(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if diff := cmp.Diff(want, s.log); diff != "" {
		t.Error(diff)
	}
	s.log = nil
}

func TestMirrors(t *testing.T) {
	text, fresh := rt.SmallManifest("text"), rt.SmallManifest("new")
	ofHome, ofMirror := rt.SmallManifest("of home"), rt.SmallManifest("of mirror")
	d := string(digest.FromString(text))
	home := newSite(t, map[string]string{"/v2/a/model/manifests/tag": ofHome, "/v2/a/model/manifests/new": fresh,
		"/v2/a/model/manifests/" + d: text, "/v2/a/model/manifests/page": fresh, "/v2/a/model/blobs/x": "ok",
		"/v2/a/model/blobs/" + string(digest.FromString("config")): "config"})
	first := newSite(t, map[string]string{})
	second := newSite(t, map[string]string{"/v2/hub/deep/a/model/manifests/tag": ofMirror,
		"/v2/hub/deep/a/model/manifests/" + d: "altered", "/v2/hub/deep/a/model/manifests/page": "<html>log in</html>",
		"/v2/hub/deep/a/model/blobs/x":                                      "ok",
		"/v2/hub/deep/a/model/blobs/" + string(digest.FromString("config")): "altered"})
	var warned []string
	mirrors := []Mirror{{Host: home.host(), Mirror: first.host()},
		{Host: home.host(), Mirror: second.host(), Prefix: "hub/deep"},
		{Host: "other.example.com", Mirror: "never.example.com"}}
	c := authClient(t, Options{Keychain: rt.AnonymousKeychain(), Mirrors: mirrors,
		Warn: func(host string, err error) { warned = append(warned, host+": "+err.Error()) }})
	ctx := context.Background()
	r := repositoryOf(t, c, home.host()+"/a/model", Pull)
	get := func(ref, want string) {
		t.Helper()
		m, err := r.GetManifest(ctx, ref)
		if err != nil || string(m.Bytes) != want {
			t.Errorf("%s: %v, %v", ref, m, err)
		}
	}
	get("tag", ofMirror)
	home.wantLog(t)
	first.wantLog(t, "GET /v2/a/model/manifests/tag")
	second.wantLog(t, "GET /v2/hub/deep/a/model/manifests/tag")
	get("new", fresh)
	home.wantLog(t, "GET /v2/a/model/manifests/new")

	// A mirror's content is verified. If it is wrong, it is read from the registry itself.
	get(d, text)
	get("page", fresh)
	x := ocispec.Descriptor{Digest: digest.FromString("config"), Size: 6}
	if b, err := r.GetBytes(ctx, x, 100); err != nil || string(b) != "config" {
		t.Errorf("%q, %v", b, err)
	}
	home.wantLog(t, "GET /v2/a/model/manifests/"+d, "GET /v2/a/model/manifests/page",
		"GET /v2/a/model/blobs/"+string(x.Digest))

	// Mirrors get only reads of blobs and manifests.
	second.wantLog(t, "GET /v2/hub/deep/a/model/manifests/new", "GET /v2/hub/deep/a/model/manifests/"+d,
		"GET /v2/hub/deep/a/model/manifests/page", "GET /v2/hub/deep/a/model/blobs/"+string(x.Digest))
	first.log = nil
	r.askFor("GET", "referrers/"+d)
	p := repositoryOf(t, c, home.host()+"/a/model", Push)
	wantSuccess(t, p, "GET", "blobs/x")
	p.askFor("POST", "blobs/uploads/")
	first.wantLog(t)
	second.wantLog(t)
	home.wantLog(t, "GET /v2/a/model/referrers/"+d, "GET /v2/a/model/blobs/x", "POST /v2/a/model/blobs/uploads/")

	// A mirror that fails is paused, with a single warning.
	first.status = http.StatusBadGateway
	second.Close()
	r = repositoryOf(t, c, home.host()+"/a/model", Pull)
	for i := range 5 {
		req, _ := r.Request(ctx, "GET", r.URL("blobs/x"), nil)
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", i))
		if got, err := r.responseBody(req); err != nil || got != "ok" {
			t.Errorf("%q, %v", got, err)
		}
	}
	first.wantLog(t, "GET /v2/a/model/blobs/x")
	if len(warned) != 2 || !strings.HasPrefix(warned[0], first.host()+": mirror of "+home.host()+" failed") ||
		!strings.HasPrefix(warned[1], second.host()) {
		t.Errorf("warned %q", warned)
	}
	first.status, first.has["/v2/a/model/blobs/x"] = 0, "ok"
	for _, m := range r.mirrors {
		m.pausedUntil = time.Time{}
	}
	r.mirrors[0].tried = map[string]bool{}
	home.log = nil
	wantSuccess(t, r, "GET", "blobs/x")
	home.wantLog(t)
}

// TestMirrorCredentials: a registry and its mirror each get only their own credentials.
func TestMirrorCredentials(t *testing.T) {
	home := newAuthPeer(t, &authPeer{scheme: "Basic", user: "ann"})
	for _, known := range []bool{false, true} {
		m := newAuthPeer(t, &authPeer{scheme: "Basic", user: "bob"})
		k := hostKeychain{home.host(): rt.PasswordKeychain("secret", home.host())}
		if known {
			bob := rt.PasswordKeychain("secret", m.host())
			bob.Cfg.Username = "bob"
			k[m.host()] = bob
		}
		c := authClient(t, Options{Keychain: k, Mirrors: []Mirror{{Host: home.host(), Mirror: m.host()}}})
		home.requests = nil
		wantSuccess(t, repositoryOf(t, c, home.host()+"/a/model", Pull), "GET", "blobs/x")
		if requested := len(home.requests) > 0; requested == known {
			t.Errorf("the registry itself was asked: %v", requested)
		}
		for _, a := range m.authorizations("/") {
			if a != "" && a != m.basic() {
				t.Errorf("the mirror got %q", a)
			}
		}
	}
}

func TestParseMirrors(t *testing.T) {
	for _, test := range []struct {
		text string
		want []Mirror
	}{
		{"", nil},
		{" , ", nil},
		{"docker.io=mirror.example.com", []Mirror{{Host: "docker.io", Mirror: "mirror.example.com"}}},
		{"docker.io=http://10.0.0.5:5000/hub",
			[]Mirror{{Host: "docker.io", Mirror: "10.0.0.5:5000", Prefix: "hub", PlainHTTP: true}}},
		{"docker.io=localhost:5000/hub, ghcr.io=m.example.com/a/b/,docker.io=n.example.com",
			[]Mirror{{Host: "docker.io", Mirror: "localhost:5000", Prefix: "hub"},
				{Host: "ghcr.io", Mirror: "m.example.com", Prefix: "a/b"},
				{Host: "docker.io", Mirror: "n.example.com"}}},
	} {
		got, err := ParseMirrors(test.text)
		if err != nil || !cmp.Equal(got, test.want) {
			t.Errorf("%q: %v, %v", test.text, got, err)
		}
	}
	for _, text := range []string{"docker.io", "docker.io=", "=m.example.com", "hub=m.example.com", "docker.io=mirror",
		"docker.io=https://m.example.com", "docker.io=m.example.com//a", "docker.io/a=m.example.com",
		"docker.io=m.example.com/a:b"} {
		if got, err := ParseMirrors(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	t.Setenv(MirrorsEnv, "nonsense")
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), MirrorsEnv) {
		t.Errorf("%v", err)
	}
	t.Setenv(MirrorsEnv, "docker.io=localhost:5000/hub")
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docker.io/llama", "index.docker.io/llama"} {
		if r := repositoryOf(t, c, name, Pull); len(r.mirrors) != 1 ||
			r.mirrors[0].repo.URL("x").String() != "http://localhost:5000/v2/hub/library/llama/x" {
			t.Errorf("mirrors of %s: %v", name, r.mirrors)
		}
	}
}
