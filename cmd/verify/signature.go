package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/signing"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/registry/attest"
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
func verifySignature(a *cli.App, c *cobra.Command, arg string, o verifyOptions) error {
	ctx := c.Context()
	key, err := signing.PublicKey(o.key)
	if err != nil {
		return err
	}
	store, raw, err := models.ResolveRaw(ctx, arg)
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
	want, err := o.identity.Check(key, requested)
	if err != nil {
		return err
	}
	sig, source, err := findSignature(ctx, a, store, raw, want, o)
	if err != nil {
		return fmt.Errorf("%s: %w", raw.Name, signing.Acceptable(err))
	}
	if sig.Reference == "" && !requested.IsLocal() {
		a.Note("warning: %v", signing.ErrNoReference)
	}
	checked, err := fsck.CheckBlobs(ctx, store, raw)
	if err != nil {
		return fmt.Errorf("%s is signed, but: %w", raw.Name, err)
	}
	if o.json {
		return a.PrintJSON(signatureJSON{raw.Name.String(), raw.Descriptor.Digest.String(), key.Hint(),
			sig.Descriptor.Digest.String(), sig.Reference, source, checked.Blobs, checked.Bytes, checked.Absent, true})
	}
	as := ""
	if sig.Reference != "" {
		as = " as " + sig.Reference
	}
	text := fmt.Sprintf("ok: %s is signed by %s key %s%s (signature %s, from the %s), %d blobs (%s) match their digests",
		raw.Descriptor.Digest, key.Kind(), key.Hint(), as, sig.Descriptor.Digest, source, checked.Blobs,
		cli.Size(checked.Bytes))
	if checked.Absent > 0 {
		text += fmt.Sprintf(", %d were not pulled", checked.Absent)
	}
	_, err = fmt.Fprintln(a.Out, text)
	return err
}

// findSignature looks for the signature in the store, and then in the registry of the model's name.
func findSignature(
	ctx context.Context, a *cli.App, store *store.Store, raw *store.Raw, want attest.SignatureCheck, o verifyOptions,
) (*attest.Signature, string, error) {
	sig, err := attest.StoredSignature(ctx, store, raw.Descriptor.Digest, want)
	if err == nil || !errors.Is(err, attest.ErrNotSigned) || want.Name.IsLocal() {
		return sig, "store", err
	}
	client, cerr := transfer.NewClient(a, &o.transfer, nil)
	if cerr != nil {
		return nil, "", cerr
	}
	if sig, rerr := attest.RemoteSignature(ctx, client, raw.Descriptor.Digest, want); rerr == nil {
		return sig, "registry", nil
	} else if !errors.Is(rerr, attest.ErrNotSigned) || len(signing.Tried(err)) == 0 {
		err = rerr
	}
	return nil, "", err
}
