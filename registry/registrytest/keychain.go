package registrytest

import (
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
)

// SingleKeychain has the same credentials for some hosts.
type SingleKeychain struct {
	Hosts []string
	Cfg   authn.AuthConfig
}

// Resolve implements [authn.Keychain].
func (k SingleKeychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if slices.Contains(k.Hosts, r.RegistryStr()) {
		return authn.FromConfig(k.Cfg), nil
	}
	return authn.Anonymous, nil
}

// AnonymousKeychain has no credentials.
func AnonymousKeychain() SingleKeychain { return SingleKeychain{} }

// PasswordKeychain has a password of the user ann for some hosts.
func PasswordKeychain(password string, hosts ...string) SingleKeychain {
	return SingleKeychain{Hosts: hosts, Cfg: authn.AuthConfig{Username: "ann", Password: password}}
}
