package remote

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/registry/credentials"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
)

// resource is the key of a credential lookup, which tries the repository first, then the host.
type resource struct{ registry, path string }

func (r resource) RegistryStr() string { return r.registry }
func (r resource) String() string {
	if r.path == "" {
		return r.registry
	}
	return r.registry + "/" + r.path
}

// access is what a credential is for.
type access struct {
	path   string // repository
	scopes []string
}

// credential authorizes the requests of one set of scopes.
type credential struct {
	header  string             // Authorization; empty if the registry requires none
	user    *credentials.Found // whose password or token it was derived from; nil: nobody's
	signed  bool               // obtained with the user's SSH key: see Client.identity
	without bool               // deliberately without the user's stored credentials, which the registry refused
	again   bool               // follows one that was refused at once
	got     time.Time
	expires time.Time // zero: never

	accepted atomic.Bool // a request with it was accepted
	refused  atomic.Pointer[refusal]
}

// refusal is a 401 response to a request with a credential.
type refusal struct {
	status *StatusError
	at     time.Time
}

// usable reports whether a credential exists, has not expired and was not refused.
func (cr *credential) usable() bool {
	return cr != nil && cr.refused.Load() == nil && (cr.expires.IsZero() || time.Until(cr.expires) > 0)
}

// newTokenLife is how soon a registry must refuse a new token for the refusal to be final. Later, the token may have
// expired unused, for example during a backoff: servers promise lives that they do not keep.
const newTokenLife = time.Second

// renewable reports whether another token may be accepted where this credential was not.
func (cr *credential) renewable() bool {
	no := cr.refused.Load()
	return no == nil || cr.accepted.Load() || no.at.Sub(cr.got) > newTokenLife
}

// authorization returns the credential for an access. It is not one that the registry refused.
func (h *host) authorization(ctx context.Context, a access) (*credential, error) {
	key := strings.Join(a.scopes, " ")
	// What gets the credential has watches of its own.
	defer waiting.Pause(ctx)()
	ctx = waiting.Without(ctx)
	for {
		if now := h.credentialOf(key); now.usable() {
			return now, nil
		}
		err := h.once(ctx, key, func() error {
			now := h.credentialOf(key)
			if now.usable() {
				return nil // another goroutine's exchange ended before this one began
			}
			if err := h.discoverAuth(ctx); err != nil {
				return err
			}
			next, err := h.exchange(ctx, a, now)
			if err == nil {
				h.keep(a, next)
			}
			return err
		})
		if err != nil {
			return nil, &spentError{err}
		}
	}
}

func (h *host) credentialOf(key string) *credential {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.credentials[key]
}

func (h *host) keep(a access, cr *credential) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.credentials[strings.Join(a.scopes, " ")] = cr
}

// exchange creates a new credential. old is the previous one, which expired or was refused, or nil.
func (h *host) exchange(ctx context.Context, a access, old *credential) (*credential, error) {
	h.mu.Lock()
	o := h.offer
	h.mu.Unlock()
	if o == nil {
		return &credential{}, nil
	}
	why := error(ErrUnauthorized)
	if old != nil && old.refused.Load() != nil {
		why = old.refused.Load().status
	}
	renew := old == nil || old.renewable()
	if old != nil && old.without {
		if renew {
			return h.anonymous(ctx, o, a)
		}
		old, renew = nil, true
	}
	user, err := h.lookUp(ctx, a.path)
	if err != nil {
		return nil, err
	}
	password := basic(user)
	switch {
	case user != nil && user.RegistryToken != "":
		return h.fixed("Bearer "+user.RegistryToken, user, old, why)
	case o.bearer == nil, password != "" && old != nil && old.header == password:
		return h.fixed(password, user, old, why)
	case old != nil && old.header == "":
		old, renew = nil, true // created before the offer was known
	}
	// First request a token with the user's credentials or anonymously, then one with a signature. Of either kind, request
	// another token only if the last one was accepted. What remains is the registry's other offer, and one more token.
	if old == nil || renew && !old.signed {
		t, err := h.token(ctx, o.bearer, user, a.scopes, nil)
		if err == nil && (old == nil || old.refused.Load() == nil || t.header() != old.header) {
			return t.credential(user), nil
		}
		if err != nil && !unauthorized(err) && !(o.basic && password != "" && ctx.Err() == nil) {
			return nil, fmt.Errorf("request a token for %s: %w", h.name, err)
		}
		why = cmp.Or(err, why)
	}
	if renew || !old.signed {
		t, err := h.signedToken(ctx, o.bearer, a.scopes)
		if err == nil && t != nil {
			cr := t.credential(user)
			cr.signed = true
			return cr, nil
		}
		if err != nil && !unauthorized(err) && !(o.basic && password != "" && ctx.Err() == nil) {
			return nil, fmt.Errorf("request a token for %s: %w", h.name, err)
		}
		why = cmp.Or(err, why)
	}
	if o.basic && password != "" && ctx.Err() == nil {
		return h.fixed(password, user, old, why)
	}
	if old != nil && !old.again && !old.signed && !renew { // by chance, the token may have expired in that moment
		if t, err := h.token(ctx, o.bearer, user, a.scopes, nil); err == nil && t.header() != old.header {
			cr := t.credential(user)
			cr.again = true
			return cr, nil
		}
	}
	return nil, h.rejected(user, why)
}

// anonymous returns a credential that needs no user.
func (h *host) anonymous(ctx context.Context, o *offer, a access) (*credential, error) {
	if o.bearer == nil {
		return &credential{without: true, got: time.Now()}, nil
	}
	defer waiting.Pause(ctx)()
	ctx = waiting.Without(ctx) // a token server's time is not the registry's
	t, err := h.token(ctx, o.bearer, nil, a.scopes, nil)
	if err != nil {
		return nil, fmt.Errorf("request a token for %s: %w", h.name, err)
	}
	cr := t.credential(nil)
	cr.without = true
	return cr, nil
}

// unauthorized reports whether an error means that the credentials do not suffice for a token.
func unauthorized(err error) bool {
	if meant := VerdictOf(verdict.Token, err); meant != "" {
		return meant == verdict.Authorize
	}
	return errors.Is(err, ErrUnauthorized)
}

// rejected returns the error for a registry that accepts none of the user's credentials.
func (h *host) rejected(user *credentials.Found, err error) error {
	var already *AuthError
	if errors.As(err, &already) {
		return err
	}
	auth := &AuthError{Host: h.name, Err: err}
	if user != nil {
		auth.Given, auth.Place, auth.Logout, auth.Stored = true, user.Place, user.Logout, !user.Given
	}
	return auth
}

// fixed returns a credential that is not exchanged for a token. There is no other, so if the registry refused it
// before, that is an error.
func (h *host) fixed(header string, user *credentials.Found, old *credential, why error) (*credential, error) {
	if old != nil && old.header == header && old.refused.Load() != nil {
		return nil, h.rejected(user, why)
	}
	return &credential{header: header, user: user, got: time.Now()}, nil
}

// lookUp finds the user's credentials, or returns nil. Sources that cannot be read are passed over: public content can
// be read without credentials.
func (h *host) lookUp(ctx context.Context, path string) (*credentials.Found, error) {
	auth, err := authn.Resolve(ctx, h.keychain, resource{h.addr, path})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	skipped := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		skipped = several.Unwrap()
	}
	for _, err := range skipped {
		if err == nil {
			continue
		}
		if err := h.c.Skipped(h.name, fmt.Errorf("credentials cannot be read: %w", err)); err != nil {
			return nil, err
		}
	}
	if auth == nil {
		return nil, nil
	}
	if found, ok := auth.(*credentials.Found); ok {
		return found, nil
	}
	cfg, err := authn.Authorization(ctx, auth)
	if err != nil {
		return nil, h.c.Skipped(h.name, fmt.Errorf("credentials cannot be read: %w", err))
	}
	if *cfg == (authn.AuthConfig{}) {
		return nil, nil
	}
	return &credentials.Found{AuthConfig: *cfg}, nil
}

// basic returns the Authorization header of a user's password, or an empty string.
func basic(user *credentials.Found) string {
	switch {
	case user == nil:
	case user.Username != "" && user.Password != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username+":"+user.Password))
	case user.Auth != "":
		return "Basic " + user.Auth
	}
	return ""
}
