//go:build unix

package credentials

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// repository is the key of a lookup.
type repository string

func (r repository) RegistryStr() string { host, _, _ := strings.Cut(string(r), "/"); return host }
func (r repository) String() string      { return string(r) }

// auth is an entry with the password "pw" of a user.
func auth(user string) string {
	return fmt.Sprintf(`{"auth":"%s"}`, base64.StdEncoding.EncodeToString([]byte(user+":pw")))
}

// home makes an empty home with docker's file and podman's, unless they are empty.
func home(t *testing.T, docker, podman string) (dir string) {
	t.Helper()
	dir = filepath.Dir(filepath.Dir(rt.DockerHome(t, docker)))
	for _, name := range []string{"DOCKER_AUTH_CONFIG", "REGISTRY_AUTH_FILE", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", dir)
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run"))
	if podman != "" {
		write(t, filepath.Join(dir, ".config", "containers", "auth.json"), podman, 0o600)
	}
	return dir
}

func write(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// putHelper installs a credential helper that records what it is asked for, and says something.
func putHelper(t *testing.T, name, says string, exit int) (calls func() string) {
	t.Helper()
	bin := os.Getenv("PATH")
	record := filepath.Join(bin, name+".asked")
	write(t, filepath.Join(bin, helperPrefix+name), fmt.Sprintf(
		"#!/bin/sh\nread key\necho \"$1 $key $PWD\" >> '%s'\necho '%s'\nexit %d\n", record, says, exit), 0o755)
	return func() string { b, _ := os.ReadFile(record); return string(b) }
}

// find looks a repository up. It returns the user, or nothing, the place, and the warnings.
func find(t *testing.T, k *Keychain, name string) (user, place, warnings string) {
	t.Helper()
	got, err := k.Resolve(repository(name))
	if err != nil {
		warnings = err.Error()
	}
	f, ok := got.(*Found)
	if !ok {
		return "", "", warnings
	}
	if f.IdentityToken != "" {
		return "token " + f.IdentityToken, f.Place, warnings
	}
	return f.Username, f.Place, warnings
}

// says is what a credential helper prints.
func says(user, secret string) string {
	return fmt.Sprintf(`{"ServerURL":"x","Username":"%s","Secret":"%s"}`, user, secret)
}

// TestOrder: which of several sources has the credentials, and what is said about those that cannot be read.
func TestOrder(t *testing.T) {
	const h = "r.example:5000"
	ann, bob := auth("ann"), auth("bob")
	for _, c := range []struct {
		what           string
		docker, podman string
		env            string // DOCKER_AUTH_CONFIG
		name           string // empty: h/team/model
		want           string // user
		warnings       []string
	}{
		{what: "nothing"},
		{what: "docker's file", docker: `{"auths":{"H":ANN}}`, podman: `{"auths":{"H":BOB}}`, want: "ann"},
		{what: "podman's file", docker: `{"auths":{"other":BOB}}`, podman: `{"auths":{"H":ANN}}`, want: "ann"},
		{what: "the variable", env: `{"auths":{"H":ANN}}`, docker: `{"auths":{"H":BOB}}`, want: "ann"},
		{what: "the variable has another host", env: `{"auths":{"other":BOB}}`, docker: `{"auths":{"H":ANN}}`,
			want: "ann"},
		{what: "a broken variable", env: `{`, docker: `{"auths":{"H":ANN}}`, want: "ann",
			warnings: []string{"DOCKER_AUTH_CONFIG: "}},
		{what: "an empty entry", docker: `{"auths":{"H":{}}}`, podman: `{"auths":{"H":ANN}}`, want: "ann"},
		{what: "an entry of null", docker: `{"auths":{"H":null}}`, podman: `{"auths":{"H":ANN}}`, want: "ann"},
		{what: "a broken file", docker: `{`, podman: `{"auths":{"H":ANN}}`, want: "ann",
			warnings: []string{"docker/config.json: "}},
		{what: "a broken entry", docker: `{"auths":{"H":{"auth":"!!!"}}}`, podman: `{"auths":{"H":ANN}}`, want: "ann",
			warnings: []string{`the entry "` + h + `" has an "auth" that`}},
		{what: "an entry of another type", docker: `{"auths":{"H":{"auth":12345678}}}`,
			podman: `{"auths":{"H":ANN}}`, want: "ann",
			warnings: []string{`the entry "` + h + `" is malformed`}},
		{what: "another host's entry is broken", docker: `{"auths":{"other":{"auth":"!!!"},"H":ANN}}`, want: "ann"},
		{what: "a part of another type", docker: `{"auths":{"H":ANN},"credHelpers":["x"]}`, want: "ann",
			warnings: []string{`"credHelpers" is not`}},
		{what: "a byte order mark", docker: "\ufeff" + `{"auths":{"H":ANN}}`, want: "ann"},
		{what: "an empty file", docker: " ", podman: `{"auths":{"H":ANN}}`, want: "ann"},
		{what: "an identity token without a password",
			docker: `{"auths":{"H":{"auth":"YW5uOg==","identitytoken":"it"}}}`, want: "token it"},

		{what: "a path", docker: `{"auths":{"H/team":ANN,"H":BOB}}`, want: "ann"},
		{what: "the longest path", docker: `{"auths":{"H/team/model":ANN,"H/team":BOB,"H":BOB}}`, want: "ann"},
		{what: "the path of podman", podman: `{"auths":{"H/team":ANN,"H":BOB}}`, want: "ann"},
		{what: "the host, beside another path", docker: `{"auths":{"H/other":BOB,"H":ANN}}`, want: "ann"},
		{what: "another path only",
			docker: `{"auths":{"H/other":BOB,"H/team/model2":BOB,"H/tea":BOB,"H/team/model/deeper":BOB}}`},
		{what: "a path in another file", docker: `{"auths":{"H":BOB}}`,
			podman: `{"auths":{"H/team":ANN}}`, want: "bob"},
		{what: "a path that ends in a slash", docker: `{"auths":{"H/team/":ANN}}`, want: "ann"},
		{what: "a broken entry of a path", docker: `{"auths":{"H/team":{"auth":"?"},"H":ANN}}`, want: "ann",
			warnings: []string{"/team"}},
		{what: "a URL is the host's", docker: `{"auths":{"https://H/v1/":ANN}}`, want: "ann"},
		{what: "a URL with a path is the host's", docker: `{"auths":{"https://H/other/":ANN}}`, want: "ann"},
		{what: "upper case", docker: `{"auths":{"hTTPS://R.Example:5000":ANN}}`, want: "ann"},
		{what: "another port", docker: `{"auths":{"r.example":BOB,"r.example:5001":BOB,"https://r.example":BOB}}`},
		{what: "a host that begins alike",
			docker: `{"auths":{"r.example:50":BOB,"r.example:5000.evil":BOB,"H@evil":BOB}}`},

		{what: "the host's helper", docker: `{"credHelpers":{"H":"one"},"credsStore":"any","auths":{"H":BOB}}`,
			want: "helped one"},
		{what: "the host's helper, the default absent", docker: `{"credHelpers":{"H":"one"},"credsStore":"absent"}`,
			want: "helped one"},
		{what: "the default helper", docker: `{"credsStore":"any","auths":{"H":BOB}}`, want: "helped any"},
		{what: "a path beside the default helper", docker: `{"credsStore":"any","auths":{"H/team":ANN}}`,
			want: "ann"},
		{what: "no helper", docker: `{"credHelpers":{"H":""},"credsStore":"any","auths":{"H":ANN}}`, want: "ann"},
		{what: "a helper that has none", docker: `{"credsStore":"none","auths":{"H":ANN}}`, want: "ann"},
		{what: "a helper of podman's", podman: `{"credHelpers":{"H":"one"}}`, want: "helped one"},
		{what: "podman's default helper", podman: `{"credsStore":"any"}`, want: "helped any"},
		{what: "podman's default helper, an entry", podman: `{"credsStore":"any","auths":{"H":ANN}}`, want: "ann"},
		{what: "a helper of another host", docker: `{"credHelpers":{"other":"any"},"auths":{"H":ANN}}`, want: "ann"},
		{what: "a helper for tokens", docker: `{"credHelpers":{"H":"token"}}`, want: "token it"},
		{what: "an absent helper", docker: `{"credsStore":"absent"}`, podman: `{"auths":{"H":ANN}}`, want: "ann",
			warnings: []string{"docker-credential-absent is not installed (named in ", "docker/config.json)"}},
		{what: "a failing helper", docker: `{"credHelpers":{"H":"fails"},"auths":{"H":ANN}}`, want: "ann",
			warnings: []string{"docker-credential-fails failed: cannot open the keyring"}},
		{what: "a failing helper that prints a secret", docker: `{"credHelpers":{"H":"leaks"}}`,
			warnings: []string{"docker-credential-leaks failed: exit status 1"}},
		{what: "a helper without JSON", docker: `{"credHelpers":{"H":"text"},"credsStore":"any"}`, want: "helped any",
			warnings: []string{"docker-credential-text prints no credentials in JSON"}},
		{what: "a helper with a path", docker: `{"credHelpers":{"H":"../one"},"auths":{"H":ANN}}`, want: "ann",
			warnings: []string{`"../one": the name contains a path`}},
		{what: "all broken", docker: `{`, podman: `[]`,
			warnings: []string{"docker/config.json", "containers/auth.json"}},

		{what: "Docker Hub", docker: `{"auths":{"https://index.docker.io/v1/":ANN}}`,
			name: "index.docker.io/library/a", want: "ann"},
		{what: "Docker Hub, docker.io",
			podman: `{"auths":{"docker.io":ANN}}`, name: "index.docker.io/a/b", want: "ann"},
		{what: "Docker Hub, registry-1",
			podman: `{"auths":{"registry-1.docker.io":ANN}}`, name: "index.docker.io/a/b", want: "ann"},
		{what: "Docker Hub, a path",
			podman: `{"auths":{"docker.io/a":ANN,"docker.io":BOB}}`, name: "index.docker.io/a/b", want: "ann"},
		{what: "Docker Hub, a helper", docker: `{"credHelpers":{"docker.io":"one"}}`,
			name: "index.docker.io/a/b", want: "helped one"},
	} {
		t.Run(c.what, func(t *testing.T) {
			fill := strings.NewReplacer(`"H`, `"`+h, `//H`, `//`+h, "ANN", ann, "BOB", bob).Replace
			home(t, fill(c.docker), fill(c.podman))
			t.Setenv("DOCKER_AUTH_CONFIG", fill(c.env))
			putHelper(t, "one", says("helped one", "pw"), 0)
			putHelper(t, "any", says("helped any", "pw"), 0)
			putHelper(t, "token", says("<token>", "it"), 0)
			putHelper(t, "text", "Password: s3cret", 0)
			putHelper(t, "none", "credentials not found in native keychain", 1)
			putHelper(t, "fails", "cannot open the keyring", 1)
			putHelper(t, "leaks", says("ann", "s3cret"), 1)
			name := c.name
			if name == "" {
				name = h + "/team/model"
			}
			for range 3 { // the order of a map must not matter
				got, place, warnings := find(t, Default, name)
				if got != c.want {
					t.Fatalf("%q from %s, want %q; %s", got, place, c.want, warnings)
				}
				for _, part := range c.warnings {
					if !strings.Contains(warnings, part) {
						t.Errorf("warnings %q lack %q", warnings, part)
					}
				}
				leaks := strings.Contains(warnings, "s3cret") || strings.Contains(warnings, "12345678")
				if len(c.warnings) == 0 && warnings != "" || leaks {
					t.Errorf("warnings %q", warnings)
				}
				if place = strings.TrimPrefix(place, helperPrefix); place == "" && got != "" || place != "" && got == "" {
					t.Errorf("place %q", place)
				}
			}
		})
	}
}

// TestHelperCalls: helpers are asked for the host alone, in a folder of their own, under the names that docker and
// podman use.
func TestHelperCalls(t *testing.T) {
	for _, c := range []struct{ config, name, want string }{
		{`{"credHelpers":{"r.example:5000":"one"}}`, "r.example:5000/team/model", "get r.example:5000 "},
		{`{"credHelpers":{"https://r.example":"absent"},"credsStore":"one"}`, "r.example/team/model", "get r.example "},
		{`{"credsStore":"one"}`, "r.example/team/model", "get r.example "},
		{`{"credsStore":"one"}`, "index.docker.io/library/a", "get https://index.docker.io/v1/ "},
		{`{"credHelpers":{"docker.io":"one"}}`, "index.docker.io/library/a", "get docker.io "},
	} {
		home(t, c.config, "")
		calls := putHelper(t, "one", says("helped", "pw"), 0)
		here := t.TempDir()
		t.Chdir(here)
		find(t, Default, c.name)
		if got := calls(); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != 1 || strings.Contains(got, here) {
			t.Errorf("%s, %s: asked %q", c.config, c.name, got)
		}
	}
}

// TestPlaces: the files of podman, in their order.
func TestPlaces(t *testing.T) {
	dir := home(t, "", "")
	at := func(elem ...string) string { return filepath.Join(append([]string{dir}, elem...)...) }
	entry := func(user string) string { return `{"auths":{"r.example":` + auth(user) + `}}` }
	write(t, at(".dockercfg"), `{"https://r.example/v1/":`+auth("old")+`}`, 0o600)
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "old"},
		{func() { write(t, at(".config", "containers", "auth.json"), entry("home"), 0o600) }, "home"},
		{func() {
			t.Setenv("XDG_CONFIG_HOME", at("xdg"))
			write(t, at("xdg", "containers", "auth.json"), entry("xdg"), 0o600)
		}, "xdg"},
		{func() { write(t, at("run", "containers", "auth.json"), entry("run"), 0o600) }, "run"},
		{func() {
			t.Setenv("REGISTRY_AUTH_FILE", at("mine.json"))
			write(t, at("mine.json"), entry("mine"), 0o600)
		}, "mine"},
		{func() { write(t, at("mine.json"), `{}`, 0o600) }, ""}, // podman reads no other then
		{func() { write(t, at("docker", "config.json"), entry("docker"), 0o600) }, "docker"},
	} {
		step.do()
		if got, _, warnings := find(t, Default, "r.example/a"); got != step.want || warnings != "" {
			t.Errorf("%q, want %q; %s", got, step.want, warnings)
		}
	}
	// Without a variable for docker's, the file that a variable names comes first, and a login is found.
	t.Setenv("DOCKER_CONFIG", "")
	write(t, at(".docker", "config.json"), entry("docker"), 0o600)
	for _, c := range []struct{ mine, want string }{{entry("mine"), "mine"}, {`{}`, "docker"}} {
		write(t, at("mine.json"), c.mine, 0o600)
		if got, _, warnings := find(t, Default, "r.example/a"); got != c.want || warnings != "" {
			t.Errorf("%q, want %q; %s", got, c.want, warnings)
		}
	}
	for _, host := range []string{"r.example", "index.docker.io"} {
		os.Remove(at("mine.json"))
		where, err := Store(t.Context(), host, authn.AuthConfig{Username: "new", Password: "pw"})
		got, _, warnings := find(t, Default, host+"/a")
		if err != nil || where != at("mine.json") || got != "new" || warnings != "" {
			t.Errorf("%s: %q in %s, %v; %s", host, got, where, err, warnings)
		}
	}
	t.Setenv("DOCKER_CONFIG", at("docker"))
	os.Remove(at("docker", "config.json"))
	os.Remove(at("mine.json"))
	if got, _, warnings := find(t, Default, "r.example/a"); got != "" || !strings.Contains(warnings, "mine.json") {
		t.Errorf("REGISTRY_AUTH_FILE names no file: %q, %q", got, warnings)
	}
}
