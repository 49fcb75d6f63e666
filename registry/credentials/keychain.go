package credentials

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/types"
	helper "github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"
	"github.com/google/go-containerregistry/pkg/authn"
)

// Default looks up docker's credentials, then podman's. go-containerregistry's keychain reads podman's only if
// docker has no file, which the first login creates, and runs credential helpers in the caller's working directory.
var Default = authn.NewMultiKeychain(&docker{}, podman{})

// docker is the keychain of docker's config.json.
type docker struct{ mu sync.Mutex } // one helper at a time: it may prompt the user

// Resolve implements authn.Keychain.
func (d *docker) Resolve(r authn.Resource) (authn.Authenticator, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, _, err := dockerConfig()
	if err != nil {
		return nil, err
	}
	return authenticator(c, credentialKey(r.String()), credentialKey(r.RegistryStr()))
}

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
		keys := []string{r.String(), r.RegistryStr()}
		for i, key := range keys {
			if key == "index.docker.io" {
				keys[i] = "docker.io" // podman's key for Docker Hub
			}
		}
		if a, err := authenticator(c, keys...); err != nil || a != authn.Anonymous {
			return a, err
		}
	}
	return authn.Anonymous, nil
}

// authenticator returns the credentials of the first key that has any, from a credential helper if the configuration
// names one.
func authenticator(c *configfile.ConfigFile, keys ...string) (authn.Authenticator, error) {
	for _, key := range keys {
		a, err := lookUp(c, key)
		if err != nil {
			return nil, err
		}
		a.ServerAddress = ""
		if a != (types.AuthConfig{}) {
			return authn.FromConfig(authn.AuthConfig{Username: a.Username, Password: a.Password, Auth: a.Auth,
				IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}), nil
		}
	}
	return authn.Anonymous, nil
}

// lookUp is c.GetAuthConfig, except that it runs helpers by helperProgram.
func lookUp(c *configfile.ConfigFile, key string) (types.AuthConfig, error) {
	program := helperOf(c, key)
	if program == "" {
		return c.GetAuthConfig(key)
	}
	if a, err := configfile.New("").GetAuthConfig(key); err != nil || a.Username != "" {
		return a, err // from DOCKER_AUTH_CONFIG, which has precedence over helpers
	}
	run, err := helperProgram(program)
	if err != nil {
		return types.AuthConfig{}, err
	}
	kept, err := helper.Get(run, key)
	switch {
	case helpers.IsErrCredentialsNotFound(err):
		return types.AuthConfig{}, nil
	case err != nil:
		return types.AuthConfig{}, fmt.Errorf("%s%s: %w", helperPrefix, program, err)
	case kept.Username == tokenUser:
		return types.AuthConfig{IdentityToken: kept.Secret}, nil
	}
	return types.AuthConfig{Username: kept.Username, Password: kept.Secret}, nil
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
