package registry

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
)

// defaultKeychain has docker's credentials, then podman's. go-containerregistry's own reads podman's only where docker has no file
// at all, which the first login makes.
var defaultKeychain = authn.NewMultiKeychain(authn.DefaultKeychain, podman{})

// podman is the keychain of podman's auth.json (containers-auth.json(5)).
type podman struct{}

func (podman) Resolve(r authn.Resource) (authn.Authenticator, error) {
	for _, path := range podmanFiles() {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		c, err := config.LoadFromReader(f)
		if err != nil {
			return nil, err
		}
		for _, key := range []string{r.String(), r.RegistryStr()} {
			if key == "index.docker.io" {
				key = "docker.io" // as podman writes it
			}
			a, err := c.GetAuthConfig(key)
			if err != nil {
				return nil, err
			}
			a.ServerAddress = ""
			if a != (types.AuthConfig{}) {
				return authn.FromConfig(authn.AuthConfig{Username: a.Username, Password: a.Password, Auth: a.Auth,
					IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}), nil
			}
		}
	}
	return authn.Anonymous, nil
}

func podmanFiles() []string {
	if file := os.Getenv("REGISTRY_AUTH_FILE"); file != "" {
		return []string{file}
	}
	var list []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		list = append(list, filepath.Join(dir, "containers", "auth.json"))
	}
	home, _ := os.UserHomeDir()
	if dir := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")); filepath.IsAbs(dir) {
		list = append(list, filepath.Join(dir, "containers", "auth.json"))
	}
	return list
}
