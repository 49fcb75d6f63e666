package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/registry/attest"
	"github.com/ingotml/ingot/registry/signed"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/spf13/cobra"
)

// flagsOfRuns are the flags of verify that need the model to run. Checking a signature does not.
var flagsOfRuns = []string{"reference", "max-kl", "min-top1", "float32", "image", "kv-type", "threads", "cpu-math"}

type signatureJSON struct {
	Name      string `json:"name"`
	Digest    string `json:"digest"`
	Key       string `json:"key"`                 // hint of the key
	Signature string `json:"signature"`           // digest of the signature's manifest
	Reference string `json:"reference,omitempty"` // reference in the signature
	Source    string `json:"source"`              // "store" or "registry"
	Blobs     int    `json:"blobs"`
	Bytes     int64  `json:"bytes"`
	Absent    int    `json:"absent,omitempty"`
	OK        bool   `json:"ok"`
}

// verifySignature checks that the key's holder signed the model's manifest, and that the blobs in the store match the
// manifest. It needs no engine.
func (a *app) verifySignature(c *cobra.Command, arg string, o verifyOptions) error {
	for _, flag := range flagsOfRuns {
		if f := c.Flags().Lookup(flag); f != nil && f.Changed {
			return usagef("--key checks a signature and --%s a run: verify them separately", flag)
		}
	}
	ctx := c.Context()
	key, err := publicKey(o.key)
	if err != nil {
		return err
	}
	store, raw, err := resolveRaw(ctx, arg)
	if err != nil {
		return err
	}
	requested, err := manifest.ParseName(arg)
	if err != nil {
		return err
	}
	if d := raw.Descriptor.Digest; requested.Tag == d.Encoded()[:12] {
		requested.Digest = d // a pull by digest creates this tag; no registry has it
	}
	want, err := o.identity.check(key, requested)
	if err != nil {
		return err
	}
	sig, source, err := a.findSignature(ctx, store, raw, want, o)
	if err != nil {
		return fmt.Errorf("%s: %w", raw.Name, acceptable(err))
	}
	if sig.Reference == "" && !requested.IsLocal() {
		a.note("warning: %v", errNoReference)
	}
	checked, err := fsck.CheckBlobs(ctx, store, raw)
	if err != nil {
		return fmt.Errorf("%s is signed, but: %w", raw.Name, err)
	}
	if o.json {
		return a.printJSON(signatureJSON{raw.Name.String(), raw.Descriptor.Digest.String(), key.Hint(),
			sig.Descriptor.Digest.String(), sig.Reference, source, checked.Blobs, checked.Bytes, checked.Absent, true})
	}
	as := ""
	if sig.Reference != "" {
		as = " as " + sig.Reference
	}
	text := fmt.Sprintf("ok: %s is signed by %s key %s%s (signature %s, from the %s), %d blobs (%s) match their digests",
		raw.Descriptor.Digest, key.Kind(), key.Hint(), as, sig.Descriptor.Digest, source, checked.Blobs, size(checked.Bytes))
	if checked.Absent > 0 {
		text += fmt.Sprintf(", %d were not pulled", checked.Absent)
	}
	_, err = fmt.Fprintln(a.out, text)
	return err
}

// findSignature looks for the signature in the store, and then in the registry of the model's name.
func (a *app) findSignature(
	ctx context.Context, store *store.Store, raw *store.Raw, want attest.SignatureCheck, o verifyOptions,
) (*attest.Signature, string, error) {
	sig, err := attest.StoredSignature(ctx, store, raw.Descriptor.Digest, want)
	if err == nil || !errors.Is(err, attest.ErrNotSigned) || want.Name.IsLocal() {
		return sig, "store", err
	}
	client, cerr := a.client(&o.transfer, nil)
	if cerr != nil {
		return nil, "", cerr
	}
	if sig, rerr := attest.RemoteSignature(ctx, client, raw.Descriptor.Digest, want); rerr == nil {
		return sig, "registry", nil
	} else if !errors.Is(rerr, attest.ErrNotSigned) || len(tried(err)) == 0 {
		err = rerr
	}
	return nil, "", err
}

// errNoReference warns about a signature without a name.
var errNoReference = errors.New("the signature names no reference: this may be another model that the key signed; " +
	"to reject it, pass --signed-identity matchRepoDigestOrExact")

// identityFlag is --signed-identity.
type identityFlag struct{ rule string }

func (f *identityFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.rule, "signed-identity", "",
		"`rule` for the signed name (default $"+signed.IdentityEnv+")")
}

// check returns the signature check for the flag, or else for the environment variable.
func (f *identityFlag) check(key *sigstore.PublicKey, name manifest.Name) (attest.SignatureCheck, error) {
	origin, rule := "--signed-identity", f.rule
	if rule == "" {
		origin, rule = signed.IdentityEnv, os.Getenv(signed.IdentityEnv)
	}
	identity, err := signed.ParseIdentity(rule)
	if err != nil {
		return attest.SignatureCheck{}, usagef("%s: %v", origin, err)
	}
	return attest.SignatureCheck{Key: key, Name: name, Identity: identity}, nil
}

// acceptable adds a remedy to the error about a signature for another reference.
func acceptable(err error) error {
	for _, t := range tried(err) {
		var other *signed.OtherReferenceError
		if errors.As(t, &other) {
			return fmt.Errorf("%w; if you want that model, pass --signed-identity exactReference=%s", err, other.Signed)
		}
	}
	return err
}

func tried(err error) []error {
	var e *attest.SignatureError
	if errors.As(err, &e) {
		return e.Tried
	}
	return nil
}
