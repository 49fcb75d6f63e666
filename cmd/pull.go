package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/spf13/cobra"
)

func (a *app) pullCmd() *cobra.Command {
	var o pullOptions
	c := &cobra.Command{
		Use:   "pull NAME",
		Short: "Bring a model from a registry into the store",
		Long: `Bring a model from a registry into the store.

Only what is not here yet moves, and a pull that was interrupted goes on where it was when it is run again. Every byte is
checked against its digest before it counts, and the name appears when all is here. With --no-draft or --only the
model is marked partial; a pull without them completes it.

With --require-signature nothing is fetched unless the holder of the key has signed the model (see ` + "`ingot sign --help`" + `) under
NAME; for NAME with a digest, under any tag of its repository. The signature is stored with the model, for
` + "`ingot verify --key`" + `. A signature that names no reference, as of cosign, is accepted with a warning; --signed-identity RULE
refuses it, and says which name is expected in a copy (docs/registries.md):

  matchRepoDigestOrExact           the default, as above
  matchExact, matchRepository      NAME exactly; any tag of its repository
  exactReference=NAME              this name
  exactRepository=REPOSITORY       any tag of this repository
  remapIdentity=PREFIX=SIGNED,...  NAME, after SIGNED has replaced PREFIX

The digest of the manifest is printed on standard output.`,
		Example: `  ingot pull registry.example.com/team/mymodel
  ingot pull registry.example.com/team/mymodel:v2 --no-draft
  ingot pull registry.example.com/team/mymodel@sha256:... --only '*.json' --only README.md`,
		Args: between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			name, err := manifest.ParseName(args[0])
			if err != nil {
				return err
			}
			if o.signed && o.key == "" {
				return usagef("--require-signature needs --key FILE, the public key of who signed the model")
			}
			if o.key != "" && !o.signed {
				return usagef("--key FILE needs --require-signature: the signature would not be checked")
			}
			if o.identity.rule != "" && !o.signed {
				return usagef("--signed-identity needs --require-signature: the signature would not be checked")
			}
			return a.pull(c.Context(), name, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.pull.NoDraft, "no-draft", false, "leave out the draft model that speeds the model up")
	f.StringArrayVar(&o.pull.Only, "only", nil, "of the layers take those whose file or tensor name matches this `GLOB` (repeatable)")
	f.BoolVar(&o.signed, "require-signature", false, "fetch the model only when it is signed by --key")
	f.StringVar(&o.key, "key", "", "public key `file` in PEM form")
	o.identity.add(c)
	f.BoolVar(&o.json, "json", false, "print the result as JSON, and progress as lines of JSON")
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
}

func (a *app) pull(ctx context.Context, name manifest.Name, o pullOptions) error {
	result, progress, err := a.fetch(ctx, name, o)
	if err != nil {
		return err
	}
	if o.json {
		return a.printJSON(pullJSON{transferJSON{result.Name.String(), result.Digest.String(), progress.counts()}, result.Partial})
	}
	if result.Name.Tag != name.Tag {
		a.note("stored as %s", result.Name)
	}
	if result.Partial > 0 {
		a.note("%s is partial: %d of its blobs were left out; `ingot pull %s` completes it", result.Name, result.Partial, result.Name)
	}
	_, err = fmt.Fprintln(a.out, result.Digest)
	return err
}

// fetch brings a model, with progress.
func (a *app) fetch(ctx context.Context, name manifest.Name, o pullOptions) (*registry.PullResult, *transferProgress, error) {
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
	result, err := client.Pull(ctx, store, name, o.pull)
	return result, progress, err
}

type pullJSON struct {
	transferJSON
	Partial int `json:"absent_blobs"`
}

// listAbsent makes of an error about a blob that is missing one that lists all that a model lacks.
func listAbsent(ctx context.Context, store *manifest.Store, name manifest.Name, err error) error {
	if !errors.Is(err, manifest.ErrBlobMissing) {
		return err
	}
	entry, failed := store.Resolve(ctx, name)
	if failed != nil {
		return err
	}
	return cmp.Or(store.CheckPresent(entry, true), err)
}
