package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
)

func (a *app) pullCmd() *cobra.Command {
	var o pullOptions
	c := &cobra.Command{
		Use:   "pull NAME",
		Short: "Pull a model from a registry into the store",
		Long: `Pull a model from a registry into the store.

Only blobs that the store lacks are downloaded. To resume an interrupted pull, run it again. Every blob is
verified against its digest, and the name appears when all blobs are present. --no-draft and --only leave
blobs out and mark the model as partial; a pull without these flags completes it.

--require-signature downloads nothing unless the holder of the key has signed the model under NAME, or
under any tag of its repository if NAME has a digest (see ` + "`ingot sign --help`" + `). The signature is stored
with the model, for ` + "`ingot verify --key`" + `. A signature without a name, such as cosign's, is accepted with a
warning. --signed-identity RULE rejects it, and sets the name that the signature of a copy must have
(docs/registries.md):

  matchRepoDigestOrExact           the default, as above
  matchExact                       exactly NAME
  matchRepository                  any tag of NAME's repository
  exactReference=NAME              this name
  exactRepository=REPOSITORY       any tag of this repository
  remapIdentity=PREFIX=SIGNED,...  NAME with PREFIX replaced by SIGNED

--max-kl KL downloads nothing unless the model has a certificate (see ` + "`ingot verify --help`" + `) with a mean
divergence of at most KL nats, from the model or digest of --against if that is given. With --key, the
holder of the key must have signed the certificate; without, it is as trustworthy as the registry.

An image of another program that holds a model's files is converted as "ingot create" does it: of Ollama,
Docker Model Runner, KitOps, modctl or oras (docs/images.md).

pull prints the digest of the manifest.`,
		Example: `  ingot pull registry.example.com/team/mymodel
  ingot pull registry.example.com/team/mymodel:v2 --no-draft
  ingot pull registry.example.com/team/mymodel --max-kl 0.05 --key team.pub
  ingot pull registry.ollama.ai/library/qwen3:0.6b
  ingot pull registry.example.com/team/mymodel@sha256:... \
    --only '*.json' --only README.md`,
		Args: between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			if o.signed && o.key == "" {
				return usagef("--require-signature requires --key FILE, the signer's public key")
			}
			o.certified = c.Flags().Changed(maxKLFlag)
			if o.key != "" && !o.signed && !o.certified {
				return usagef("--key FILE requires --require-signature or --max-kl: otherwise no signature is checked")
			}
			if o.certified && !(o.maxKL >= 0) {
				return usagef("--max-kl %v must not be negative; use a divergence in nats, such as 0.05", o.maxKL)
			}
			if o.against != "" && !o.certified {
				return usagef("--against requires --max-kl: otherwise no certificate is checked")
			}
			if o.identity.rule != "" && !o.signed {
				return usagef("--signed-identity requires --require-signature: otherwise the signature is not checked")
			}
			return a.pull(c.Context(), name, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.pull.NoDraft, "no-draft", false, "leave out the draft model")
	f.StringArrayVar(&o.pull.Only, "only", nil, "pull only files and tensors that match `GLOB` (repeatable)")
	f.BoolVar(&o.signed, "require-signature", false, "pull only if the model is signed with --key")
	f.StringVar(&o.key, "key", "", "PEM `file` with the public key")
	o.identity.add(c)
	f.Float64Var(&o.maxKL, maxKLFlag, 0, "pull only with a certificate of at most this mean `KL`")
	f.StringVar(&o.against, "against", "", "`model` or digest that the certificate compares with")
	f.BoolVar(&o.json, "json", false, "print the result as JSON, progress as JSON lines")
	o.transfer.add(c)
	return c
}

type pullOptions struct {
	pull     registry.PullOptions
	transfer transferFlags
	json     bool
	signed   bool
	key      string
	identity identityFlag

	certified bool // --max-kl is given
	maxKL     float64
	against   string
}

func (a *app) pull(ctx context.Context, name manifest.Name, o pullOptions) error {
	result, progress, err := a.fetch(ctx, name, o)
	if err != nil {
		return err
	}
	if o.json {
		transfer := transferJSON{result.Name.String(), result.Digest.String(), progress.counts()}
		return a.printJSON(pullJSON{transfer, result.Partial})
	}
	if result.Name.Tag != name.Tag {
		a.note("stored as %s", result.Name)
	}
	if result.Partial > 0 {
		a.note("%s is partial: %d of its blobs were left out; complete it with `ingot pull %s`",
			result.Name, result.Partial, result.Name)
	}
	_, err = fmt.Fprintln(a.out, result.Digest)
	return err
}

// fetch pulls a model and shows progress.
func (a *app) fetch(ctx context.Context, name manifest.Name, o pullOptions) (*registry.PullResult, *transferProgress,
	error) {
	progress := a.transferProgress("pull", o.json)
	defer progress.end()
	client, err := a.client(&o.transfer, progress.set)
	if err != nil {
		return nil, nil, err
	}
	store, err := a.openStore()
	if err != nil {
		return nil, nil, err
	}
	if o.signed {
		if o.pull.Verify, err = requireSignature(client, store, name, o, progress.set); err != nil {
			return nil, nil, err
		}
	}
	if o.certified {
		certified, err := requireCertificate(ctx, client, store, name, o)
		if err != nil {
			return nil, nil, err
		}
		o.pull.Verify = both(o.pull.Verify, certified)
	}
	o.pull.Files = true
	result, err := client.Pull(ctx, store, name, o.pull)
	if err == nil && result.Files != nil {
		progress.end()
		err = a.convertPulled(ctx, store, result, o.json)
	}
	return result, progress, err
}

// both returns a check that passes if both do. The first may be nil.
func both(a, b func(context.Context, digest.Digest) error) func(context.Context, digest.Digest) error {
	if a == nil {
		return b
	}
	return func(ctx context.Context, d digest.Digest) error {
		if err := a(ctx, d); err != nil {
			return err
		}
		return b(ctx, d)
	}
}

type pullJSON struct {
	transferJSON
	Partial int `json:"absent_blobs"`
}

// listAbsent replaces an error about one missing blob by an error that lists all missing blobs of the model.
func listAbsent(ctx context.Context, store *store.Store, name manifest.Name, err error) error {
	if !errors.Is(err, manifest.ErrBlobMissing) {
		return err
	}
	entry, failed := store.Resolve(ctx, name)
	if failed != nil {
		return err
	}
	return cmp.Or(store.CheckPresent(entry, true), err)
}
