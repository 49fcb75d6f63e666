package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/signing"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/attest"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
)

// pullRequirements are the flags of pull that say what must vouch for a model.
type pullRequirements struct {
	signed   bool
	key      string
	identity signing.IdentityFlag

	certified bool // --max-kl is given
	maxKL     float64
	against   string
}

func (r *pullRequirements) add(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&r.signed, "require-signature", false, "pull only if the model is signed with --key")
	f.StringVar(&r.key, "key", "", "PEM `file` with the public key")
	r.identity.Add(c)
	f.Float64Var(&r.maxKL, "max-kl", 0, "pull only with a certificate of at most this mean `KL`")
	f.StringVar(&r.against, "against", "", "`model` or digest that the certificate compares with")
}

// check checks the flags.
func (r *pullRequirements) check(c *cobra.Command) error {
	r.certified = c.Flags().Changed("max-kl")
	switch {
	case r.signed && r.key == "":
		return cli.Usagef("--require-signature requires --key FILE, the signer's public key")
	case r.key != "" && !r.signed && !r.certified:
		return cli.Usagef("--key FILE requires --require-signature or --max-kl: otherwise no signature is checked")
	case r.certified && !(r.maxKL >= 0):
		return cli.Usagef("--max-kl %v must not be negative; use a divergence in nats, such as 0.05", r.maxKL)
	case r.against != "" && !r.certified:
		return cli.Usagef("--against requires --max-kl: otherwise no certificate is checked")
	case r.identity.Rule != "" && !r.signed:
		return cli.Usagef("--signed-identity requires --require-signature: otherwise the signature is not checked")
	}
	return nil
}

// require returns the check of a pull, which passes if all requirements are met.
func (r *pullRequirements) require(
	ctx context.Context, client *registry.Client, st *store.Store, name manifest.Name, warn func(registry.Event),
) (models.Check, error) {
	var checks []models.Check
	if r.signed {
		signed, err := r.signature(client, st, name, warn)
		if err != nil {
			return nil, err
		}
		checks = append(checks, signed)
	}
	if r.certified {
		certified, err := r.certificate(ctx, client, st, name)
		if err != nil {
			return nil, err
		}
		checks = append(checks, certified)
	}
	return func(ctx context.Context, d digest.Digest) error {
		for _, check := range checks {
			if err := check(ctx, d); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// signature returns the signature check of a pull: the manifest must be signed by the key for the name. The
// check stores the signature before the model is pulled. warn receives warnings.
func (r *pullRequirements) signature(
	client *registry.Client, store *store.Store, name manifest.Name, warn func(registry.Event),
) (models.Check, error) {
	key, err := signing.PublicKey(r.key)
	if err != nil {
		return nil, err
	}
	want, err := r.identity.Check(key, name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, d digest.Digest) error {
		sig, err := attest.StoredSignature(ctx, store, d, want)
		if err != nil {
			if sig, err = attest.RemoteSignature(ctx, client, d, want); err != nil {
				return signing.Acceptable(err)
			}
			if err := sig.Store(ctx, store); err != nil {
				return err
			}
		}
		if sig.Reference == "" {
			warn(registry.Event{Kind: registry.Warned, Name: name.String(), Err: signing.ErrNoReference})
		}
		return nil
	}, nil
}

// certificate returns the check of a pull: a certificate of the manifest must state a mean divergence of at most
// --max-kl. It stores the certificate before the model is pulled.
func (r *pullRequirements) certificate(
	ctx context.Context, client *registry.Client, st *store.Store, name manifest.Name,
) (models.Check, error) {
	want := certify.Requirement{MaxKL: r.maxKL}
	var err error
	if r.key != "" {
		if want.Key, err = signing.PublicKey(r.key); err != nil {
			return nil, err
		}
	}
	if want.Base, err = baseDigest(ctx, st, r.against); err != nil {
		return nil, err
	}
	return func(ctx context.Context, d digest.Digest) error { return want.Find(ctx, client, st, name, d) }, nil
}

// baseDigest returns the digest of the base that certificates must name: a model of the store, or a digest.
func baseDigest(ctx context.Context, st *store.Store, base string) (digest.Digest, error) {
	if base == "" || manifest.ValidDigest(digest.Digest(base)) {
		return digest.Digest(base), nil
	}
	name, err := manifest.ParseName(base)
	if err != nil {
		return "", err
	}
	if name.Digest != "" {
		return name.Digest, nil
	}
	raw, err := st.ResolveRaw(ctx, name)
	if errors.Is(err, manifest.ErrNotFound) {
		return "", fmt.Errorf("--against: %w; name a digest instead", err)
	}
	if err != nil {
		return "", err
	}
	return raw.Descriptor.Digest, nil
}
