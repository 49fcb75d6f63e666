package registry

import (
	"context"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/browse"
	"github.com/spf13/cobra"
)

func deleteCommand(a *cli.App) *cobra.Command {
	var transfer transfer.Flags
	var yes bool
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete an image in a registry",
		Long: `Delete an image in a registry, after a question. Nothing in the store is removed; "ingot rm" does that.

A NAME with a tag loses the tag. If no other tag names the same manifest, the manifest is deleted too, with the
signatures and other artifacts attached to it. A NAME with a digest is deleted with all its tags.

The registry frees the space of the blobs when it collects garbage. Many registries delete only for some users, or not
at all.`,
		Example: `  ingot delete registry.example.com/team/model:v1
  ingot delete registry.example.com/team/model@sha256:... --yes`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return delete(c.Context(), a, args[0], yes, &transfer)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	transfer.AddConnection(c)
	return c
}

func delete(ctx context.Context, a *cli.App, arg string, yes bool, flags *transfer.Flags) error {
	name, err := parseRemote(arg)
	switch {
	case err != nil:
		return err
	case name.IsLocal():
		return cli.Usagef("%s names no registry; `ingot rm %s` removes a model from the store", name, name)
	case !yes && !a.OnTerminal():
		return cli.Usagef("delete asks on a terminal; without one, --yes is needed")
	}
	client, err := transfer.NewClient(a, flags, nil)
	if err != nil {
		return err
	}
	d, err := browse.PlanDeletion(ctx, client, name)
	if err != nil {
		return err
	}
	a.Note("%s", deletes(d))
	if !yes {
		if yes, err = a.Confirm(ctx, fmt.Sprintf("Delete %s?", name)); err != nil {
			return err
		}
		if !yes {
			a.Note("nothing deleted")
			return nil
		}
	}
	if err := d.Run(ctx); err != nil {
		return err
	}
	a.Note("deleted %s", name)
	return nil
}

// deletes describes a deletion.
func deletes(d *browse.Deletion) string {
	whole := manifest.Name{Host: d.Name.Host, Path: d.Name.Path, Digest: d.Digest}
	tags := strings.Join(d.Tags, ", ")
	switch {
	case !d.Whole && d.TagsUnknown != nil:
		return fmt.Sprintf("this deletes the tag; %s stays, because its other tags are unknown: %v", whole, d.TagsUnknown)
	case !d.Whole:
		return fmt.Sprintf("this deletes the tag; %s stays, because it is tagged %s too", whole, tags)
	}
	text := fmt.Sprintf("this deletes %s (%s)", whole, cli.Size(d.Size))
	switch n := len(d.Attached); n {
	case 0:
	case 1:
		text += " with an attached artifact"
	default:
		text += fmt.Sprintf(" with %d attached artifacts", n)
	}
	switch {
	case d.TagsUnknown != nil:
		text += fmt.Sprintf(" and all its tags, which are unknown: %v", d.TagsUnknown)
	case tags != "":
		text += " and its tags: " + tags
	}
	return text
}
