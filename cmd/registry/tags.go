package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/browse"
	"github.com/spf13/cobra"
)

func tagsCommand(a *cli.App) *cobra.Command {
	var transfer transfer.Flags
	var asJSON, omit bool
	c := &cobra.Command{
		Use:   "tags REPO",
		Short: "List the tags of a repository",
		Long: `List the tags of a repository in a registry, in the registry's order, one on a line. A REPO without a registry
is looked up in the store.

Registries without a referrers API have a tag for each image that something is attached to (sha256-...), and
cosign makes such tags too. --omit-digest-tags leaves them out.`,
		Example: `  ingot tags registry.example.com/team/model
  ingot tags ghcr.io/me/model --json`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			list, err := tags(c.Context(), a, args[0], &transfer)
			if err != nil {
				return err
			}
			if omit {
				list.Tags = slices.DeleteFunc(list.Tags, browse.IsDigestTag)
			}
			if asJSON {
				return a.PrintJSON(list)
			}
			if len(list.Tags) == 0 {
				a.Note("note: %s has no tags", list.Name)
				return nil
			}
			_, err = fmt.Fprintln(a.Out, strings.Join(list.Tags, "\n"))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&omit, "omit-digest-tags", false, "leave out tags of attached artifacts")
	transfer.AddConnection(c)
	return c
}

type tagsJSON struct {
	Name string   `json:"name"` // of the repository
	Tags []string `json:"tags"`
}

// tags lists the tags of a repository.
func tags(ctx context.Context, a *cli.App, arg string, flags *transfer.Flags) (tagsJSON, error) {
	name, err := parseRemote(arg)
	if err != nil {
		return tagsJSON{}, err
	}
	repo := manifest.Name{Host: name.Host, Path: name.Path}
	if name.Digest != "" || cli.HasTag(arg) {
		return tagsJSON{}, cli.Usagef("%s names an image; name its repository: %s", arg, repo)
	}
	list := tagsJSON{Name: repo.String(), Tags: []string{}}
	if !repo.IsLocal() {
		client, err := transfer.NewClient(a, flags, nil)
		if err != nil {
			return tagsJSON{}, err
		}
		tags, err := browse.Tags(ctx, client, repo)
		list.Tags = append(list.Tags, tags...)
		return list, err
	}
	st, err := store.Open("")
	if err != nil {
		return tagsJSON{}, err
	}
	models, err := st.List(ctx)
	if err != nil {
		return tagsJSON{}, err
	}
	for _, m := range models {
		if m.Name.Host == "" && m.Name.Path == repo.Path {
			list.Tags = append(list.Tags, m.Name.Tag)
		}
	}
	if len(list.Tags) == 0 {
		_, err = st.ResolveRaw(ctx, name) // the error suggests similar names
	}
	return list, err
}
