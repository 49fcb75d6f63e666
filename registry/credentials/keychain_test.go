//go:build unix

package credentials

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	rt "github.com/ingotml/ingot/registry/registrytest"
)

// TestHelpers: credentials come from DOCKER_AUTH_CONFIG, else from the host's credential helper, else from the default
// helper. If the helper has none, podman's file is used.
func TestHelpers(t *testing.T) {
	config := rt.DockerHome(t,
		`{"credsStore":"all","credHelpers":{"one.example.com":"one","token.example.com":"token","broken.example.com":"broken",
		"path.example.com":"../one","absent.example.com":"absent"},"auths":{"other.example.com":{"auth":"YTpi"}}}`)
	bin := os.Getenv("PATH")
	os.Mkdir(bin, 0o755)
	for name, says := range map[string]string{
		"one":    `{"ServerURL":"x","Username":"ann","Secret":"one"}`,
		"token":  `{"ServerURL":"x","Username":"<token>","Secret":"identity"}`,
		"broken": `no JSON`,
		"all":    "credentials not found in native keychain",
	} {
		exit := "0"
		if name == "all" {
			exit = "1"
		}
		script := "#!/bin/sh\necho '" + says + "'\npwd > " + filepath.Join(bin, name+".pwd") + "\nexit " + exit + "\n"
		if err := os.WriteFile(filepath.Join(bin, helperPrefix+name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	podmans := filepath.Join(filepath.Dir(config), "auth.json")
	auth := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	if err := os.WriteFile(podmans, []byte(`{"auths":{"podman.example.com":{"auth":"`+auth("p:q")+`"}}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REGISTRY_AUTH_FILE", podmans)
	t.Setenv("DOCKER_AUTH_CONFIG", `{"auths":{"env.example.com":{"auth":"`+auth("e:f")+`"}}}`)
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		host string
		want authn.AuthConfig
		err  string
	}{
		{"one.example.com", authn.AuthConfig{Username: "ann", Password: "one"}, ""},
		{"token.example.com", authn.AuthConfig{IdentityToken: "identity"}, ""},
		{"env.example.com", authn.AuthConfig{Username: "e", Password: "f"}, ""},
		{"podman.example.com", authn.AuthConfig{Username: "p", Password: "q"}, ""},
		{"other.example.com", authn.AuthConfig{}, ""}, // the default helper has precedence over the file
		{"broken.example.com", authn.AuthConfig{}, "docker-credential-broken"},
		{"path.example.com", authn.AuthConfig{}, `"../one": the name contains a path`},
		{"absent.example.com", authn.AuthConfig{}, "docker-credential-absent"},
	} {
		a, err := Default.Resolve(repositoryOfHost(test.host))
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %q", test.host, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.host, err)
			continue
		}
		got, err := a.Authorization()
		if err != nil || got.Username != test.want.Username || got.Password != test.want.Password ||
			got.IdentityToken != test.want.IdentityToken {
			t.Errorf("%s: %+v, %v, want %+v", test.host, got, err, test.want)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "all"} {
		ran, err := os.ReadFile(filepath.Join(bin, name+".pwd"))
		if err != nil || strings.TrimSpace(string(ran)) == here || len(ran) == 0 {
			t.Errorf("helper %s ran in %q, %v", name, ran, err)
		}
	}
}

// repositoryOfHost is the key of a lookup for a repository of a host.
type repositoryOfHost string

func (h repositoryOfHost) RegistryStr() string { return string(h) }
func (h repositoryOfHost) String() string      { return string(h) + "/team/model" }
