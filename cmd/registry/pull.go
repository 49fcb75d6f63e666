package registry

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func pullCommand(a *cli.App) *cobra.Command {
	var o models.PullOptions
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
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			if err := must.check(c); err != nil {
				return err
			}
			if must.signed || must.certified {
				o.Require = must.require
			}
			return pull(c.Context(), a, name, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.Pull.NoDraft, "no-draft", false, "leave out the draft model")
	f.StringArrayVar(&o.Pull.Only, "only", nil, "pull only files and tensors that match `GLOB` (repeatable)")
	must.add(c)
	f.BoolVar(&o.JSON, "json", false, "print the result as JSON, progress as JSON lines")
	o.Transfer.Add(c)
	return c
}

func pull(ctx context.Context, a *cli.App, name manifest.Name, o models.PullOptions) error {
	result, progress, err := models.Pull(ctx, a, name, o)
	if err != nil {
		return err
	}
	if o.JSON {
		transfer := transfer.ResultJSON{Name: result.Name.String(), Digest: result.Digest.String(), Counts: progress.Counts()}
		return a.PrintJSON(pullJSON{transfer, result.Partial})
	}
	if result.Name.Tag != name.Tag {
		a.Note("stored as %s", result.Name)
	}
	if result.Partial > 0 {
		a.Note("%s is partial: %d of its blobs were left out; complete it with `ingot pull %s`",
			result.Name, result.Partial, result.Name)
	}
	_, err = fmt.Fprintln(a.Out, result.Digest)
	return err
}

type pullJSON struct {
	transfer.ResultJSON
	Partial int `json:"absent_blobs"`
}
