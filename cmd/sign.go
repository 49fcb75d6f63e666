package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
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

What is signed is the digest of the model's manifest, and with it every byte of the model, under NAME: a registry cannot
serve the model under another name or tag to those who require a signature. A NAME without a host means nothing to others
and is not recorded; --as gives the name that the model is going to have. Sign each tag that the model gets.

The signature stays beside the model in the store, and ` + "`ingot push`" + ` sends it along. --push sends the signature alone to the
registry of NAME, where the model is already. A model that is not in the store is signed there: ingot prints the digest
that the registry has under NAME and asks, unless NAME holds the digest or --yes is given.
` + "`cosign verify --key FILE --insecure-ignore-tlog`" + ` verifies the signature too. A model that is pushed with --format of the other
encoding has another manifest, which is not signed.

The key is a PEM file with an ECDSA P-256 or Ed25519 private key. openssl or cosign makes one:

  openssl genpkey -algorithm ed25519 -out model.key
  openssl pkey -in model.key -pubout -out model.pub
  cosign generate-key-pair

The password of a key that cosign encrypted is taken from INGOT_KEY_PASSWORD or COSIGN_PASSWORD, or asked for.`,
		Example: `  ingot sign team/model --key model.key --as registry.example.com/team/model:v1
  ingot sign registry.example.com/team/model:v1@sha256:... --key model.key --push`,
		Args: between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return a.sign(c.Context(), args[0], o) },
	}
	c.Flags().StringVar(&o.key, "key", "", "private key `file` in PEM form")
	c.Flags().BoolVar(&o.push, "push", false, "send the signature to the registry of NAME")
	c.Flags().StringVar(&o.as, "as", "", "sign for this `name`, with host, instead of NAME")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "sign what the registry has under NAME without asking")
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

// attachedJSON is what was made for a model: a signature, or another artifact.
type attachedJSON struct {
	Name    string `json:"name"`
	Subject string `json:"subject"` // digest of the model's manifest
	Digest  string `json:"digest"`  // of the artifact's
}

func (a *app) sign(ctx context.Context, arg string, o signOptions) error {
	if o.key == "" {
		return usagef("--key FILE is needed: the private key; see `ingot sign --help` for how to make one")
	}
	name, err := manifest.ParseName(arg)
	if err != nil {
		return err
	}
	if o.push && name.IsLocal() {
		return usagef("--push needs a name with a host, such as registry.example.com/%s", name.Path)
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
		subject = ocispec.Descriptor{MediaType: raw.Descriptor.MediaType, Digest: raw.Descriptor.Digest, Size: raw.Descriptor.Size}
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
		return fmt.Errorf("%w; --push signs it in the registry", err)
	default:
		return err
	}
	sig, err := registry.Sign(key, subject, reference)
	if err != nil {
		return err
	}
	if stored {
		if err := sig.Store(ctx, store); err != nil {
			return err
		}
	}
	if o.push {
		if err := client.PushSignature(ctx, name, sig); err != nil {
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

// signedReference returns the reference that the signature names: that of --as, else that of the model's name.
func signedReference(name manifest.Name, as string) (string, error) {
	if as == "" {
		return registry.SignedReference(name), nil
	}
	other, err := manifest.ParseName(as)
	switch {
	case err != nil:
		return "", err
	case other.IsLocal():
		return "", usagef("--as %s: the name needs a host, such as registry.example.com/%s", as, other.Path)
	case other.Digest != "":
		return "", usagef("--as %s: give a tag; the signature holds the digest of what is signed", as)
	}
	return registry.SignedReference(other), nil
}

// confirmSigning reports whether to sign a digest that only the registry has vouched for: the user has given it, or says yes.
func (a *app) confirmSigning(ctx context.Context, name manifest.Name, d digest.Digest, o signOptions) (bool, error) {
	if o.yes || name.Digest != "" {
		return true, nil
	}
	if o.json || !a.onTerminal() {
		exact := name
		exact.Digest = d
		return false, usagef("%s is not in the store; in the registry it is %s: --yes signs that, so does `ingot sign %s`", name, d, exact)
	}
	yes, err := a.confirm(ctx, fmt.Sprintf("%s is not in the store; in the registry it is %s. Sign that?", name, d))
	if err == nil && !yes {
		a.note("nothing signed")
	}
	return yes, err
}

func (a *app) noteSigned(name manifest.Name, subject ocispec.Descriptor, sig *registry.Signature, key *sigstore.PrivateKey, pushed bool) {
	name.Digest = subject.Digest
	signed := fmt.Sprintf("signed %s", name)
	if sig.Reference != "" {
		signed += " as " + sig.Reference
	}
	next := "; `ingot push` sends the signature along"
	if pushed {
		next = ", and pushed the signature"
	}
	a.note("%s with key %s%s", signed, key.Public().Hint(), next)
	if sig.Reference == "" {
		a.note("note: the signature names no reference, so it is good for any name; --as NAME gives it one")
	}
}

// privateKey reads a key that signs.
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

// publicKey reads a key that verifies.
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

// keyPassword takes the password of a key from the environment, else from whoever sits at the terminal.
func (a *app) keyPassword(ctx context.Context, file string) ([]byte, error) {
	for _, name := range []string{"INGOT_KEY_PASSWORD", "COSIGN_PASSWORD"} {
		if p, ok := os.LookupEnv(name); ok {
			return []byte(p), nil
		}
	}
	in, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, fmt.Errorf("it is encrypted: set INGOT_KEY_PASSWORD or COSIGN_PASSWORD")
	}
	return a.askSecret(ctx, in, "password of "+file)
}
