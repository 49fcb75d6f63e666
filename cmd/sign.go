package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/attest"
	"github.com/ingotml/ingot/registry/signed"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) signCmd() *cobra.Command {
	var o signOptions
	c := &cobra.Command{
		Use:   "sign NAME --key FILE",
		Short: "Sign a model",
		Long: `Sign a model, and print the digest of the signature.

The signature covers NAME and the digest of the model's manifest, and thereby every byte of the model. A
registry cannot serve the model under another name or tag to users who require a signature. A NAME without
a host is only local and is not recorded; --as sets the name that the model will have. Sign every tag that
the model gets.

The store keeps the signature with the model, and ` + "`ingot push`" + ` pushes it too. --push pushes only the
signature, to the registry of NAME, which must have the model already. If the store lacks the model, sign
prints the digest that the registry has under NAME and asks for confirmation, unless NAME has a digest or
--yes is given.

` + "`cosign verify --key FILE --insecure-ignore-tlog`" + ` verifies the signature too. Pushing with --format in the
other encoding creates another manifest, which is not signed.

The key is a PEM file with an ECDSA P-256 or Ed25519 private key. Create one with openssl or cosign:

  openssl genpkey -algorithm ed25519 -out model.key
  openssl pkey -in model.key -pubout -out model.pub
  cosign generate-key-pair

The password of a key that cosign encrypted comes from INGOT_KEY_PASSWORD or COSIGN_PASSWORD, or else from
a question on the terminal.`,
		Example: `  ingot sign team/model --key model.key \
    --as registry.example.com/team/model:v1
  ingot sign registry.example.com/team/model:v1@sha256:... \
    --key model.key --push`,
		Args: between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return a.sign(c.Context(), args[0], o) },
	}
	c.Flags().StringVar(&o.key, "key", "", "PEM `file` with the private key (required)")
	c.Flags().BoolVar(&o.push, "push", false, "push the signature to the registry of NAME")
	c.Flags().StringVar(&o.as, "as", "", "`name` with host in the signature (default NAME)")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "sign the registry's digest of NAME without asking")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	o.transfer.addConnection(c)
	return c
}

type signOptions struct {
	key       string
	as        string
	push      bool
	yes, json bool
	transfer  transferFlags
}

// attachedJSON describes an artifact that was attached to a model: a signature or another file.
type attachedJSON struct {
	Name    string `json:"name"`
	Subject string `json:"subject"` // digest of the model's manifest
	Digest  string `json:"digest"`  // digest of the artifact's manifest
}

func (a *app) sign(ctx context.Context, arg string, o signOptions) error {
	if o.key == "" {
		return usagef("--key FILE is required; see `ingot sign --help` for how to make a private key")
	}
	name, err := manifest.ParseName(arg)
	if err != nil {
		return err
	}
	if o.push && name.IsLocal() {
		return usagef("--push requires a name with a host, such as registry.example.com/%s", name.Path)
	}
	reference, err := signedReference(name, o.as)
	if err != nil {
		return err
	}
	key, err := a.privateKey(ctx, o.key)
	if err != nil {
		return err
	}
	client, err := a.client(&o.transfer, nil)
	if err != nil {
		return err
	}
	store, err := a.openStore()
	if err != nil {
		return err
	}
	raw, err := store.ResolveRaw(ctx, name)
	stored := err == nil
	var subject ocispec.Descriptor
	switch {
	case stored:
		name = raw.Name
		d := raw.Descriptor
		subject = ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	case o.push && errors.Is(err, manifest.ErrNotFound):
		m, err := client.Resolve(ctx, name)
		if err != nil {
			return err
		}
		if signs, err := a.confirmSigning(ctx, name, m.Digest, o); err != nil || !signs {
			return err
		}
		subject = ocispec.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Bytes))}
	case !name.IsLocal() && errors.Is(err, manifest.ErrNotFound):
		return fmt.Errorf("%w; sign it in the registry with --push", err)
	default:
		return err
	}
	sig, err := attest.Sign(key, subject, reference)
	if err != nil {
		return err
	}
	if stored {
		if err := sig.Store(ctx, store); err != nil {
			return err
		}
	}
	if o.push {
		if err := sig.Push(ctx, client, name); err != nil {
			return err
		}
	}
	a.noteSigned(name, subject, sig, key, o.push)
	if o.json {
		return a.printJSON(attachedJSON{name.String(), subject.Digest.String(), sig.Descriptor.Digest.String()})
	}
	_, err = fmt.Fprintln(a.out, sig.Descriptor.Digest)
	return err
}

// signedReference returns the reference for the signature: the name of --as, or else the model's name.
func signedReference(name manifest.Name, as string) (string, error) {
	if as == "" {
		return signed.Reference(name), nil
	}
	other, err := manifest.ParseName(as)
	switch {
	case err != nil:
		return "", err
	case other.IsLocal():
		return "", usagef("--as %s: the name must have a host, such as registry.example.com/%s", as, other.Path)
	case other.Digest != "":
		return "", usagef("--as %s: give a tag instead of a digest; the signature has the digest itself", as)
	}
	return signed.Reference(other), nil
}

// confirmSigning reports whether to sign a digest that only the registry has vouched for. The user must have given the
// digest or --yes, or confirm it.
func (a *app) confirmSigning(ctx context.Context, name manifest.Name, d digest.Digest, o signOptions) (bool, error) {
	if o.yes || name.Digest != "" {
		return true, nil
	}
	if o.json || !a.onTerminal() {
		exact := name
		exact.Digest = d
		return false, usagef("%s is not in the store; in the registry it is %s: sign that with --yes or `ingot sign %s`",
			name, d, exact)
	}
	yes, err := a.confirm(ctx, fmt.Sprintf("%s is not in the store; in the registry it is %s. Sign that?", name, d))
	if err == nil && !yes {
		a.note("nothing signed")
	}
	return yes, err
}

func (a *app) noteSigned(
	name manifest.Name, subject ocispec.Descriptor, sig *attest.Signature, key *sigstore.PrivateKey, pushed bool,
) {
	name.Digest = subject.Digest
	signed := fmt.Sprintf("signed %s", name)
	if sig.Reference != "" {
		signed += " as " + sig.Reference
	}
	next := "; `ingot push` pushes the signature too"
	if pushed {
		next = ", and pushed the signature"
	}
	a.note("%s with key %s%s", signed, key.Public().Hint(), next)
	if sig.Reference == "" {
		a.note("note: the signature names no reference, so it is valid for any name; set one with --as NAME")
	}
}

// privateKey reads a private key.
func (a *app) privateKey(ctx context.Context, file string) (*sigstore.PrivateKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := sigstore.ReadPrivateKey(b, func() ([]byte, error) { return a.keyPassword(ctx, file) })
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	return key, nil
}

// publicKey reads a public key.
func publicKey(file string) (*sigstore.PublicKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := sigstore.ReadPublicKey(b)
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", file, err)
	}
	return key, nil
}

// keyPassword takes the password of a key from the environment, or asks for it on the terminal.
func (a *app) keyPassword(ctx context.Context, file string) ([]byte, error) {
	for _, name := range []string{"INGOT_KEY_PASSWORD", "COSIGN_PASSWORD"} {
		if p, ok := os.LookupEnv(name); ok {
			return []byte(p), nil
		}
	}
	in, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, fmt.Errorf("the key is encrypted: set INGOT_KEY_PASSWORD or COSIGN_PASSWORD")
	}
	return a.askSecret(ctx, in, "password of "+file)
}
