package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// hostKeychain selects a keychain by host.
type hostKeychain map[string]rt.SingleKeychain

func (m hostKeychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return m[r.RegistryStr()].Resolve(r)
}

func readJSON(t *testing.T, file string) (v map[string]any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestLogin(t *testing.T) {
	for _, p := range []*authPeer{{scheme: "Basic", user: "ann"}, {scheme: "Bearer", user: "ann"}, {}} {
		file := rt.DockerHome(t, "")
		p = newAuthPeer(t, p)
		c := authClient(t, Options{})
		ctx := context.Background()
		if p.scheme != "" {
			_, err := c.Login(ctx, p.host(), "ann", "hunter2")
			var auth *AuthError
			if !errors.As(err, &auth) || auth.Host != p.host() {
				t.Errorf("%s: %v", p.scheme, err)
			}
			rt.CheckNoSecrets(t, err, "hunter2", "YW5uOmh1bnRlcjI")
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s: a wrong password is stored", p.scheme)
			}
		}
		got, err := c.Login(ctx, p.host(), "ann", "secret")
		if p.scheme == "" {
			if _, absent := os.Stat(file); err != nil || got.Stored != "" || absent == nil {
				t.Errorf("a registry without credentials: %+v, %v", got, err)
			}
			continue
		}
		if err != nil || got.Stored != file {
			t.Fatalf("%s: %+v, %v", p.scheme, got, err)
		}
		want := map[string]any{"auths": map[string]any{p.host(): map[string]any{"auth": "YW5uOnNlY3JldA=="}}}
		if diff := cmp.Diff(want, readJSON(t, file)); diff != "" {
			t.Error(diff)
		}
		if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("mode %v", info.Mode())
		}
		// The same client and another one now use the stored credentials.
		wantSuccess(t, repositoryOf(t, c, p.host()+"/a/model", Push), "GET", "blobs/x")
		wantSuccess(t, repositoryOf(t, authClient(t, Options{}), p.host()+"/a/model", Push), "GET", "blobs/x")
		found, err := Logout(t.Context(), p.host())
		if err != nil || !found {
			t.Errorf("logout: %v, %v", found, err)
		}
		if found, err := Logout(t.Context(), p.host()); err != nil || found {
			t.Errorf("second logout: %v, %v", found, err)
		}
	}
}

// TestLoginForIdentityToken: if the registry issues an identity token, the password is not stored.
func TestLoginForIdentityToken(t *testing.T) {
	file := rt.DockerHome(t, "")
	var p *authPeer
	p = newAuthPeer(t, &authPeer{scheme: "Bearer", user: "ann", oauth2: true,
		handler: func(w http.ResponseWriter, req *http.Request) bool {
			if req.URL.Path != "/token" || req.URL.Query().Get("offline_token") != "true" ||
				req.URL.Query().Get("account") != "ann" || req.Header.Get("Authorization") != p.basic() {
				return false
			}
			p.tokens["t"] = []string{""}
			fmt.Fprint(w, `{"token":"t","refresh_token":"refresh-me"}`)
			return true
		}})
	c := authClient(t, Options{})
	if _, err := c.Login(context.Background(), p.host(), "ann", "secret"); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"auths": map[string]any{
		p.host(): map[string]any{"auth": "YW5uOg==", "identitytoken": "refresh-me"},
	}}
	if diff := cmp.Diff(want, readJSON(t, file)); diff != "" {
		t.Error(diff)
	}
	p.revoke()
	wantSuccess(t, repositoryOf(t, c, p.host()+"/a/model", Push), "GET", "blobs/x")
}

// TestLoginPreservesConfig: login preserves everything else in docker's file, including keys that docker/cli does not
// know. A file that cannot be parsed is not replaced.
func TestLoginPreservesConfig(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Basic", user: "ann"})
	before := `{"HttpHeaders":{"X":"<&>"},"future":{"n":12345678901234567890},` +
		`"auths":{"other.example.com":{"auth":"YTpi","email":"a@b"}},"credHelpers":{"gcr.io":"gcloud"}}`
	file := rt.DockerHome(t, before)
	c := authClient(t, Options{})
	if _, err := c.Login(context.Background(), p.host(), "ann", "secret"); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(file)
	for _, keep := range []string{`"<&>"`, "12345678901234567890", `"email": "a@b"`, `"gcr.io": "gcloud"`} {
		if !strings.Contains(string(b), keep) {
			t.Errorf("%s is gone:\n%s", keep, b)
		}
	}
	if found, err := Logout(t.Context(), "http-or-not."+p.host()); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := Logout(t.Context(), p.host()); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	json.Unmarshal([]byte(before), &want)
	if diff := cmp.Diff(want, readJSON(t, file)); diff != "" {
		t.Error(diff)
	}
	for _, damaged := range []string{`{"auths":`, `[]`, `null`, `{"auths":[]}`} {
		file := rt.DockerHome(t, damaged)
		if _, err := c.Login(context.Background(), p.host(), "ann", "secret"); err == nil {
			t.Errorf("%s: no error", damaged)
		}
		if b, _ := os.ReadFile(file); string(b) != damaged {
			t.Errorf("%s became %s", damaged, b)
		}
		left, _ := os.ReadDir(filepath.Dir(file))
		if len(left) != 1 {
			t.Errorf("%d files are left", len(left))
		}
	}
}

func TestLoginThroughSymlink(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Basic", user: "ann"})
	file := rt.DockerHome(t, "{}")
	real := filepath.Join(t.TempDir(), "dotfiles.json")
	if err := os.Rename(file, real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, file); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
	if _, err := authClient(t, Options{}).Login(context.Background(), p.host(), "ann", "secret"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if readJSON(t, real)["auths"] == nil {
		t.Error("nothing is stored")
	}
}

func TestLoginDockerHub(t *testing.T) {
	p := newAuthPeer(t, &authPeer{scheme: "Basic", user: "ann"})
	file := rt.DockerHome(t, "")
	c := authClient(t, Options{PlainHTTP: true})
	dialTo(c, p.host())
	if _, err := c.Login(context.Background(), "docker.io", "ann", "secret"); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"auths": map[string]any{"https://index.docker.io/v1/": map[string]any{"auth": "YW5uOnNlY3JldA=="}},
	}
	if diff := cmp.Diff(want, readJSON(t, file)); diff != "" {
		t.Error(diff)
	}
	wantSuccess(t, repositoryOf(t, c, "docker.io/llama", Push), "GET", "blobs/x")
	if found, err := Logout(t.Context(), "index.docker.io"); !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

// TestPodmanCredentials: podman's credentials are used for hosts that docker's file does not list.
func TestPodmanCredentials(t *testing.T) {
	for _, docker := range []string{"", `{"auths":{"other.example.com":{"auth":"YTpi"}}}`} {
		rt.DockerHome(t, docker)
		p := newAuthPeer(t, &authPeer{scheme: "Basic", user: "ann"})
		c := authClient(t, Options{})
		file := filepath.Join(t.TempDir(), "auth.json")
		if err := os.WriteFile(file, fmt.Appendf(nil, `{"auths":{"%s":{"auth":"YW5uOnNlY3JldA=="}}}`,
			p.host()), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("REGISTRY_AUTH_FILE", file)
		wantSuccess(t, repositoryOf(t, c, p.host()+"/a/model", Pull), "GET", "blobs/x")
	}
}
