package cmd

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
)

func (a *app) pullCmd() *cobra.Command {
	var o pullOptions
	var must pullRequirements
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
			if err := must.check(c); err != nil {
				return err
			}
			if must.signed || must.certified {
				o.require = must.require
			}
			return a.pull(c.Context(), name, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.pull.NoDraft, "no-draft", false, "leave out the draft model")
	f.StringArrayVar(&o.pull.Only, "only", nil, "pull only files and tensors that match `GLOB` (repeatable)")
	must.add(c)
	f.BoolVar(&o.json, "json", false, "print the result as JSON, progress as JSON lines")
	o.transfer.add(c)
	return c
}

// pullOptions say how a model is pulled.
type pullOptions struct {
	pull     registry.PullOptions
	transfer transferFlags
	json     bool
	// require returns a check of the manifest, which runs before the model is pulled. It may be nil. warn receives
	// warnings.
	require func(
		ctx context.Context, client *registry.Client, st *store.Store, name manifest.Name, warn func(registry.Event),
	) (manifestCheck, error)
}

// manifestCheck accepts or rejects the manifest with a digest.
type manifestCheck = func(context.Context, digest.Digest) error

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
	if o.require != nil {
		if o.pull.Verify, err = o.require(ctx, client, store, name, progress.set); err != nil {
			return nil, nil, err
		}
	}
	o.pull.Files = true
	result, err := client.Pull(ctx, store, name, o.pull)
	if err == nil && result.Files != nil {
		progress.end()
		err = a.convertPulled(ctx, store, result, o.json)
	}
	return result, progress, err
}

type pullJSON struct {
	transferJSON
	Partial int `json:"absent_blobs"`
}
