package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/browse"
	"github.com/spf13/cobra"
)

func (a *app) deleteCmd() *cobra.Command {
	var transfer transferFlags
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
		Args: between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.delete(c.Context(), args[0], yes, &transfer)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	transfer.addConnection(c)
	return c
}

func (a *app) delete(ctx context.Context, arg string, yes bool, flags *transferFlags) error {
	name, err := parseRemote(arg)
	switch {
	case err != nil:
		return err
	case name.IsLocal():
		return usagef("%s names no registry; `ingot rm %s` removes a model from the store", name, name)
	case !yes && !a.onTerminal():
		return usagef("delete asks on a terminal; without one, --yes is needed")
	}
	client, err := a.client(flags, nil)
	if err != nil {
		return err
	}
	d, err := browse.PlanDeletion(ctx, client, name)
	if err != nil {
		return err
	}
	a.note("%s", deletes(d))
	if !yes {
		if yes, err = a.confirm(ctx, fmt.Sprintf("Delete %s?", name)); err != nil {
			return err
		}
		if !yes {
			a.note("nothing deleted")
			return nil
		}
	}
	if err := d.Run(ctx); err != nil {
		return err
	}
	a.note("deleted %s", name)
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
	text := fmt.Sprintf("this deletes %s (%s)", whole, size(d.Size))
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
