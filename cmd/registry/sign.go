package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/signing"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/attest"
	"github.com/ingotml/ingot/registry/signed"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"
)

func signCommand(a *cli.App) *cobra.Command {
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
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return sign(c.Context(), a, args[0], o) },
	}
	c.Flags().StringVar(&o.key, "key", "", "PEM `file` with the private key (required)")
	c.Flags().BoolVar(&o.push, "push", false, "push the signature to the registry of NAME")
	c.Flags().StringVar(&o.as, "as", "", "`name` with host in the signature (default NAME)")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "sign the registry's digest of NAME without asking")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	o.transfer.AddConnection(c)
	return c
}

type signOptions struct {
	key       string
	as        string
	push      bool
	yes, json bool
	transfer  transfer.Flags
}

// attachedJSON describes an artifact that was attached to a model: a signature or another file.
type attachedJSON struct {
	Name    string `json:"name"`
	Subject string `json:"subject"` // digest of the model's manifest
	Digest  string `json:"digest"`  // digest of the artifact's manifest
}

func sign(ctx context.Context, a *cli.App, arg string, o signOptions) error {
	if o.key == "" {
		return cli.Usagef("--key FILE is required; see `ingot sign --help` for how to make a private key")
	}
	name, err := manifest.ParseName(arg)
	if err != nil {
		return err
	}
	if o.push && name.IsLocal() {
		return cli.Usagef("--push requires a name with a host, such as registry.example.com/%s", name.Path)
	}
	reference, err := signedReference(name, o.as)
	if err != nil {
		return err
	}
	key, err := signing.PrivateKey(ctx, a, o.key)
	if err != nil {
		return err
	}
	client, err := transfer.NewClient(a, &o.transfer, nil)
	if err != nil {
		return err
	}
	store, err := a.OpenStore()
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
		if signs, err := confirmSigning(ctx, a, name, m.Digest, o); err != nil || !signs {
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
	noteSigned(a, name, subject, sig, key, o.push)
	if o.json {
		return a.PrintJSON(attachedJSON{name.String(), subject.Digest.String(), sig.Descriptor.Digest.String()})
	}
	_, err = fmt.Fprintln(a.Out, sig.Descriptor.Digest)
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
		return "", cli.Usagef("--as %s: the name must have a host, such as registry.example.com/%s", as, other.Path)
	case other.Digest != "":
		return "", cli.Usagef("--as %s: give a tag instead of a digest; the signature has the digest itself", as)
	}
	return signed.Reference(other), nil
}

// confirmSigning reports whether to sign a digest that only the registry has vouched for. The user must have given the
// digest or --yes, or confirm it.
func confirmSigning(ctx context.Context, a *cli.App, name manifest.Name, d digest.Digest, o signOptions) (bool, error) {
	if o.yes || name.Digest != "" {
		return true, nil
	}
	if o.json || !a.OnTerminal() {
		exact := name
		exact.Digest = d
		return false, cli.Usagef("%s is not in the store; in the registry it is %s: sign that with --yes or `ingot sign %s`",
			name, d, exact)
	}
	yes, err := a.Confirm(ctx, fmt.Sprintf("%s is not in the store; in the registry it is %s. Sign that?", name, d))
	if err == nil && !yes {
		a.Note("nothing signed")
	}
	return yes, err
}

func noteSigned(a *cli.App,
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
	a.Note("%s with key %s%s", signed, key.Public().Hint(), next)
	if sig.Reference == "" {
		a.Note("note: the signature names no reference, so it is valid for any name; set one with --as NAME")
	}
}
