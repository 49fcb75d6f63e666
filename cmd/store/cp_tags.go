package store

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/alltags"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/registry/layout"
)

// copiedTagsJSON is the result of a copy of all tags.
type copiedTagsJSON struct {
	Name      string          `json:"name"` // of the repository or layout that was copied to
	Copied    int             `json:"copied"`
	Unchanged int             `json:"unchanged"`
	Failed    int             `json:"failed"`
	Tags      []copiedTagJSON `json:"tags"`
	transfer.Counts
}

// copiedTagJSON is one tag of a copy.
type copiedTagJSON struct {
	Tag       string `json:"tag"`
	Digest    string `json:"digest,omitempty"`
	Unchanged bool   `json:"unchanged"`
	Error     string `json:"error,omitempty"`
}

// allTagsPlace parses a repository or a layout that stands for all its tags.
func allTagsPlace(s string, source bool) (layout.Place, error) {
	switch {
	case isOllama(s), hub.IsName(s):
		return layout.Place{}, cli.Usagef("--all-tags copies between registries and layouts, and %s is in neither", s)
	case layout.IsRef(s):
		ref, err := layout.ParseRef(s)
		switch {
		case err != nil:
			return layout.Place{}, cli.Usagef("%v", err)
		case ref.Name != "" || ref.Digest != "":
			return layout.Place{}, cli.Usagef("--all-tags copies every tag; leave out what follows %s", ref.Path)
		case ref.Archive && !source:
			return layout.Place{}, cli.Usagef("--all-tags writes no archive, since each tag would write it anew; copy to a "+
				"folder, %sDIR", layout.Scheme)
		}
		return layout.Place{Layout: &ref}, nil
	}
	n, err := manifest.ParseName(s)
	switch {
	case err != nil:
		return layout.Place{}, err
	case n.IsLocal():
		return layout.Place{}, cli.Usagef("--all-tags copies between registries and layouts; %s must name a registry, "+
			"such as registry.example.com/me/model", s)
	case n.Digest != "" || cli.HasTag(s):
		return layout.Place{}, cli.Usagef("--all-tags copies every tag; leave out what follows %s/%s", n.Host, n.Path)
	}
	return layout.Place{Name: n}, nil
}

// copyAllTags copies all tags of a repository or of a layout.
func copyAllTags(ctx context.Context, a *cli.App, from, to, format string, asJSON bool, o *remoteCopy) error {
	if format != "" {
		return cli.Usagef("--format cannot change models between registries; pull them, and push them with --format")
	}
	src, err := allTagsPlace(from, true)
	if err != nil {
		return err
	}
	dst, err := allTagsPlace(to, false)
	if err != nil {
		return err
	}
	bar := transfer.NewProgress(a, "copy", asJSON)
	defer bar.End()
	client, err := transfer.NewClient(a, &o.transfer, bar.Set)
	if err != nil {
		return err
	}
	result := copiedTagsJSON{Name: dst.Name.Host + "/" + dst.Name.Path, Tags: []copiedTagJSON{}}
	if dst.Layout != nil {
		result.Name = dst.Layout.String()
	}
	err = alltags.Copy(ctx, client, src, dst, layout.Options{Push: o.push}, func(t alltags.Tag) {
		j := copiedTagJSON{Tag: t.Tag, Digest: t.Digest.String(), Unchanged: t.Unchanged}
		switch {
		case t.Err != nil:
			result.Failed++
			j.Error = t.Err.Error()
		case t.Unchanged:
			result.Unchanged++
		default:
			result.Copied++
		}
		result.Tags = append(result.Tags, j)
	})
	bar.End()
	if err != nil {
		return err
	}
	result.Counts = bar.Counts()
	if err := printCopiedTags(a, result, asJSON); err != nil {
		return err
	}
	if result.Failed > 0 {
		return cli.ErrFailed
	}
	return nil
}

// printCopiedTags prints the tags, those that failed as errors, and a summary.
func printCopiedTags(a *cli.App, r copiedTagsJSON, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(r)
	}
	for _, t := range r.Tags {
		if t.Error != "" {
			a.Tell("ingot: %s: %s", t.Tag, t.Error)
			continue
		}
		if _, err := fmt.Fprintf(a.Out, "%s:%s@%s\n", r.Name, t.Tag, t.Digest); err != nil {
			return err
		}
	}
	a.Note("%d tags copied, %d unchanged, %d failed", r.Copied, r.Unchanged, r.Failed)
	return nil
}
