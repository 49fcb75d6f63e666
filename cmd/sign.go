package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/sigstore"
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

What is signed is the digest of the model's manifest, and with it every byte of the model. The signature stays beside
the model in the store, and ` + "`ingot push`" + ` sends it along. --push sends the signature alone to the registry of NAME, where the
model is already; a model that is not in the store is signed there. ` + "`cosign verify --key FILE --insecure-ignore-tlog`" + `
verifies it too. A model that is pushed with --format of the other encoding has another manifest, which is not signed.

The key is a PEM file with an ECDSA P-256 or Ed25519 private key. openssl or cosign makes one:

  openssl genpkey -algorithm ed25519 -out model.key
  openssl pkey -in model.key -pubout -out model.pub
  cosign generate-key-pair

The password of a key that cosign encrypted is taken from INGOT_KEY_PASSWORD or COSIGN_PASSWORD, or asked for.`,
		Example: `  ingot sign team/model --key model.key
  ingot sign registry.example.com/team/model --key model.key --push`,
		Args: between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return a.sign(c.Context(), args[0], o) },
	}
	c.Flags().StringVar(&o.key, "key", "", "private key `file` in PEM form")
	c.Flags().BoolVar(&o.push, "push", false, "send the signature to the registry of NAME")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	o.transfer.addConnection(c)
	return c
}

type signOptions struct {
	key      string
	push     bool
	json     bool
	transfer transferFlags
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
		subject = ocispec.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Bytes))}
	case !name.IsLocal() && errors.Is(err, manifest.ErrNotFound):
		return fmt.Errorf("%w; --push signs it in the registry", err)
	default:
		return err
	}
	sig, err := registry.Sign(key, subject)
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
	a.noteSigned(name, subject, key, o.push)
	if o.json {
		return a.printJSON(attachedJSON{name.String(), subject.Digest.String(), sig.Descriptor.Digest.String()})
	}
	_, err = fmt.Fprintln(a.out, sig.Descriptor.Digest)
	return err
}

func (a *app) noteSigned(name manifest.Name, subject ocispec.Descriptor, key *sigstore.PrivateKey, pushed bool) {
	name.Digest = subject.Digest
	if pushed {
		a.note("signed %s with key %s, and pushed the signature", name, key.Public().Hint())
		return
	}
	a.note("signed %s with key %s; `ingot push` sends the signature along", name, key.Public().Hint())
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
