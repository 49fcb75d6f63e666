package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
)

// flagsOfRuns are those of verify that need the model to run, which a signature does not.
var flagsOfRuns = []string{"reference", "max-kl", "min-top1", "float32", "image", "kv-type", "threads", "cpu-math"}

type signatureJSON struct {
	Name      string `json:"name"`
	Digest    string `json:"digest"`
	Key       string `json:"key"`       // the hint
	Signature string `json:"signature"` // digest of its manifest
	Source    string `json:"source"`    // store or registry
	Blobs     int    `json:"blobs"`
	Bytes     int64  `json:"bytes"`
	Absent    int    `json:"absent,omitempty"`
	OK        bool   `json:"ok"`
}

// verifySignature checks that a key's holder signed the model's manifest, and that what lies in the store is what that
// manifest names. It needs no engine.
func (a *app) verifySignature(c *cobra.Command, arg string, o verifyOptions) error {
	for _, flag := range flagsOfRuns {
		if f := c.Flags().Lookup(flag); f != nil && f.Changed {
			return usagef("--key checks a signature and --%s a run: verify one after the other", flag)
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
	sig, source, err := a.findSignature(ctx, store, raw, key, o)
	if err != nil {
		return fmt.Errorf("%s: %w", raw.Name, err)
	}
	checked, err := store.CheckBlobs(ctx, raw)
	if err != nil {
		return fmt.Errorf("%s is signed, but: %w", raw.Name, err)
	}
	if o.json {
		return a.printJSON(signatureJSON{raw.Name.String(), raw.Descriptor.Digest.String(), key.Hint(), sig.Descriptor.Digest.String(),
			source, checked.Blobs, checked.Bytes, checked.Absent, true})
	}
	text := fmt.Sprintf("ok: %s is signed by %s key %s (signature %s, from the %s), %d blobs (%s) match their digests",
		raw.Descriptor.Digest, key.Kind(), key.Hint(), sig.Descriptor.Digest, source, checked.Blobs, size(checked.Bytes))
	if checked.Absent > 0 {
		text += fmt.Sprintf(", %d were not pulled", checked.Absent)
	}
	_, err = fmt.Fprintln(a.out, text)
	return err
}

// findSignature looks in the store, then in the registry that the model's name says.
func (a *app) findSignature(ctx context.Context, store *manifest.Store, raw *manifest.Raw, key *sigstore.PublicKey, o verifyOptions) (*registry.Signature, string, error) {
	sig, err := registry.StoredSignature(ctx, store, raw.Descriptor.Digest, key)
	if err == nil || !errors.Is(err, registry.ErrNotSigned) || raw.Name.IsLocal() {
		return sig, "store", err
	}
	client, cerr := a.client(&o.transfer, nil)
	if cerr != nil {
		return nil, "", cerr
	}
	if sig, rerr := client.Signature(ctx, raw.Name, raw.Descriptor.Digest, key); rerr == nil {
		return sig, "registry", nil
	} else if !errors.Is(rerr, registry.ErrNotSigned) || len(tried(err)) == 0 {
		err = rerr
	}
	return nil, "", err
}

// requireSignature makes the check of a pull: that the manifest is signed by a key. The signature is stored before the model.
func requireSignature(client *registry.Client, store *manifest.Store, name manifest.Name, file string) (func(context.Context, digest.Digest) error, error) {
	key, err := publicKey(file)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, d digest.Digest) error {
		if _, err := registry.StoredSignature(ctx, store, d, key); err == nil {
			return nil
		}
		sig, err := client.Signature(ctx, name, d, key)
		if err != nil {
			return err
		}
		return sig.Store(ctx, store)
	}, nil
}

func tried(err error) []error {
	var e *registry.SignatureError
	if errors.As(err, &e) {
		return e.Tried
	}
	return nil
}
