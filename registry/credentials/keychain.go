package credentials

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
)

// Default is the keychain of the user's own files and credential helpers.
var Default = &Keychain{}

// Keychain finds credentials in DOCKER_AUTH_CONFIG, then where docker keeps them, then where podman does: see
// [sources]. It implements [authn.Keychain].
//
// Of each file, it takes the first of these that has any: the credential helper of the host, the entry with the longest
// path that leads to the repository, the default credential helper, the entry of the host. Paths are podman's
// (containers-auth.json(5)) and the default helper is docker's; ingot knows both in either file.
type Keychain struct {
	given []source // searched before all others

	mu sync.Mutex // one helper at a time: it may prompt the user
}

// Found are credentials and the place that has them. It implements [authn.Authenticator].
type Found struct {
	authn.AuthConfig
	Place  string // a file, a helper, a variable or a flag
	Given  bool   // for this command: see Keychain.With
	Logout string // what `ingot logout` removes them by; empty if it cannot
}

// Authorization implements [authn.Authenticator].
func (f *Found) Authorization() (*authn.AuthConfig, error) {
	cfg := f.AuthConfig
	return &cfg, nil
}

// Resolve implements [authn.Keychain].
func (k *Keychain) Resolve(r authn.Resource) (authn.Authenticator, error) {
	return k.ResolveContext(context.Background(), r)
}

// ResolveContext implements [authn.ContextKeychain]. It returns a [*Found] or [authn.Anonymous], also beside an error,
// which joins what is wrong with the sources that were passed over.
func (k *Keychain) ResolveContext(ctx context.Context, r authn.Resource) (authn.Authenticator, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := keysOf(r.String())
	var skipped []error
	for _, s := range append(k.given[:len(k.given):len(k.given)], sources()...) {
		found, errs := s.find(ctx, keys)
		skipped = append(skipped, errs...)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if found != nil {
			return found, errors.Join(skipped...)
		}
	}
	return authn.Anonymous, errors.Join(skipped...)
}

// keysOf returns the keys that may have a repository's credentials, the longest first: host/a/b, host/a, host.
func keysOf(repository string) []string {
	key := canonicalKey(repository)
	keys := []string{key}
	for {
		slash := strings.LastIndexByte(key, '/')
		if slash < 0 {
			return keys
		}
		key = key[:slash]
		keys = append(keys, key)
	}
}

// find returns the credentials of the first key that has any, or nil, and what could not be read.
func (s source) find(ctx context.Context, keys []string) (*Found, []error) {
	f, problems := s.read()
	host, paths := keys[len(keys)-1], keys[:len(keys)-1]
	ask := func(helper, key string) *Found {
		cfg, err := askHelper(ctx, helper, key)
		if err != nil {
			problems = append(problems, fmt.Errorf("%w (named in %s)", err, s.place))
		}
		if cfg == (authn.AuthConfig{}) {
			return nil
		}
		return &Found{cfg, helperPrefix + helper, s.given, s.logout(host)}
	}
	entry := func(key string) *Found {
		for _, spelling := range f.spellings(key) {
			cfg, err := decodeEntry(f.Auths[spelling])
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: the entry %q %w", s.place, spelling, err))
			}
			if cfg != (authn.AuthConfig{}) {
				return &Found{cfg, s.place, s.given, s.logout(key)}
			}
		}
		return nil
	}

	helper, helperKey, own := f.helperOf(host)
	if own && helper != "" {
		if found := ask(helper, helperKey); found != nil {
			return found, problems
		}
	}
	for _, key := range paths {
		if found := entry(key); found != nil {
			return found, problems
		}
	}
	store := func(host string) *Found {
		if f.CredsStore == "" || own && helper == "" {
			return nil
		}
		return ask(f.CredsStore, storeKey(host))
	}
	last := []func(string) *Found{store, entry}
	if s.podman { // which knows no default helper
		slices.Reverse(last)
	}
	for _, look := range last {
		if found := look(host); found != nil {
			return found, problems
		}
	}
	return nil, problems
}
