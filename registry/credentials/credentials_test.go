//go:build unix

package credentials

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// TestWith: credentials for one command come before the user's own, for their own registry only.
func TestWith(t *testing.T) {
	home(t, `{"auths":{"r.example":`+auth("stored")+`,"docker.io":`+auth("stored")+`}}`, "")
	for _, c := range []struct {
		content   string
		keys      []string
		name      string
		want, err string
	}{
		{"ann:pw", []string{"r.example"}, "r.example/a/b", "ann", ""},
		{"ann:p:w\r\n", []string{"r.example"}, "r.example/a/b", "ann", ""},
		{"ann:pw", []string{"r.example/a/b"}, "r.example/a/b", "ann", ""},
		{"ann:pw", []string{"r.example/a/b"}, "r.example/a/bc", "stored", ""},
		{"ann:pw", []string{"other.example"}, "r.example/a/b", "stored", ""},
		{"ann:pw", []string{"docker.io/llama"}, "index.docker.io/library/llama", "ann", ""},
		{`{"auths":{"r.example":` + auth("bob") + `}}`, nil, "r.example/a/b", "bob", ""},
		{`{"auths":{"other.example":` + auth("bob") + `}}`, nil, "r.example/a/b", "stored", ""},
		{"ann:pw", nil, "", "", "names none"},
		{"ann:pw", []string{"a.example", "b.example"}, "", "", "names a.example and b.example"},
		{"s3cret", []string{"r.example"}, "", "", "must hold USER:PASSWORD"},
		{":s3cret", []string{"r.example"}, "", "", "must hold USER:PASSWORD"},
		{"ann:", []string{"r.example"}, "", "", "must hold USER:PASSWORD"},
		{"ann:s3cret\nmore", []string{"r.example"}, "", "", "must hold USER:PASSWORD"},
		{"", []string{"r.example"}, "", "", "must hold USER:PASSWORD"},
		{`{"auths":`, nil, "", "", "the file: "},
		{"ann:" + strings.Repeat("x", MaxFile), []string{"r.example"}, "", "", "must hold USER:PASSWORD"},
	} {
		k, err := Default.With([]byte(c.content), "the file", c.keys)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q: %v, want %q", c.content[:min(len(c.content), 40)], err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.content, err)
			continue
		}
		got, place, _ := find(t, k, c.name)
		if got != c.want || (place == "the file") != (c.want != "stored") {
			t.Errorf("%q for %v, %s: %q from %s", c.content, c.keys, c.name, got, place)
		}
	}
}

// TestErase: what a refusal names for `ingot logout` is gone afterwards, wherever it was, and nothing else is.
func TestErase(t *testing.T) {
	other := `"other":` + auth("other") + `,"r.example/b":` + auth("b")
	for _, c := range []struct{ docker, podman, name, logout string }{
		{`{"auths":{"r.example":` + auth("ann") + `,` + other + `}}`, "", "r.example/a", "r.example"},
		{`{"auths":{"https://r.example/v1/":` + auth("ann") + `,` + other + `}}`, "", "r.example/a", "r.example"},
		{"", `{"auths":{"r.example":` + auth("ann") + `,` + other + `}}`, "r.example/a", "r.example"},
		{"", `{"auths":{"r.example/a":` + auth("ann") + `,` + other + `}}`, "r.example/a/model", "r.example/a"},
		{`{"auths":{"docker.io/a":` + auth("ann") + `,` + other + `}}`, "", "index.docker.io/a/model", "docker.io/a"},
		{`{"auths":{"https://index.docker.io/v1/":` + auth("ann") + `,` + other + `}}`, "",
			"index.docker.io/a/model", "docker.io"},
		{`{"auths":{"r.example":` + auth("ann") + `,` + other + `},"credsStore":"absent"}`, "", "r.example/a", "r.example"},
		{`{"auths":{"r.example":` + auth("ann") + `,` + other + `}}`, `{`, "r.example/a", "r.example"},
	} {
		home(t, c.docker, c.podman)
		got, _ := Default.Resolve(repository(c.name))
		f, ok := got.(*Found)
		if !ok || f.Logout != c.logout {
			t.Errorf("%s%s: %+v, want %s", c.docker, c.podman, got, c.logout)
			continue
		}
		found, err := Erase(t.Context(), f.Logout)
		broken := strings.Contains(c.docker, "absent") || c.podman == "{"
		if !found || (err != nil) != broken {
			t.Errorf("%s%s: erase: %v, %v", c.docker, c.podman, found, err)
		}
		for name, want := range map[string]string{c.name: "", "other/x": "other", "r.example/b/x": "b"} {
			if got, place, _ := find(t, Default, name); got != want {
				t.Errorf("%s%s: then %s has %q from %s", c.docker, c.podman, name, got, place)
			}
		}
	}
}

// TestEraseFromHelper: a helper that has the credentials erases them.
func TestEraseFromHelper(t *testing.T) {
	home(t, `{"credHelpers":{"r.example":"one"}}`, "")
	calls := putHelper(t, "one", says("helped", "pw"), 0)
	if found, err := Erase(t.Context(), "r.example"); !found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	if got := calls(); !strings.Contains(got, "erase r.example") {
		t.Errorf("asked %q", got)
	}
}

// TestStore: credentials are stored in the helper that docker would use, else in the file, and are found there.
func TestStore(t *testing.T) {
	for _, c := range []struct{ config, where, err string }{
		{`{}`, "config.json", ""},
		{`{"auths":{"other":{"auth":"!!!"}}}`, "config.json", ""}, // another's broken entry is kept
		{`{"auths":null}`, "config.json", ""},
		{`{"credsStore":"one"}`, "docker-credential-one", ""},
		{`{"credsStore":"absent","credHelpers":{"r.example":"one"}}`, "docker-credential-one", ""},
		{`{"credsStore":"absent","credHelpers":{"r.example":""}}`, "config.json", ""},
		{`{"credsStore":"absent"}`, "", "docker-credential-absent is not installed"},
		{`{"auths":`, "", "config.json: "},
	} {
		dir := home(t, c.config, "")
		calls := putHelper(t, "one", says("helped", "pw"), 0)
		where, err := Store(t.Context(), "r.example", authn.AuthConfig{Username: "ann", Password: "s3cret"})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.config, err, c.err)
			}
			rt.CheckNoSecrets(t, err, "s3cret")
			if b, _ := os.ReadFile(filepath.Join(dir, "docker", "config.json")); string(b) != c.config {
				t.Errorf("%s became %s", c.config, b)
			}
			continue
		}
		if err != nil || filepath.Base(where) != c.where {
			t.Errorf("%s: %q, %v", c.config, where, err)
		}
		want := "ann"
		if c.where == "docker-credential-one" {
			want = "helped"
			if !strings.HasPrefix(calls(), "store ") {
				t.Errorf("%s: asked %q", c.config, calls())
			}
		}
		if got, _, warnings := find(t, Default, "r.example/a"); got != want {
			t.Errorf("%s: then %q, %s", c.config, got, warnings)
		}
	}
}
