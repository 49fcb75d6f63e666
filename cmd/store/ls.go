package store

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/spf13/cobra"
)

func lsCommand(a *cli.App) *cobra.Command {
	var format cli.FormatFlags
	var names bool
	c := &cobra.Command{
		Use:     "ls [NAME]...",
		Aliases: []string{"list"},
		Short:   "List the models in the store",
		Long: `List the models in the store, or only those that match a NAME. A name may be a quoted pattern, in which
* and ? match anything except a slash. A name without a tag matches every tag.

SIZE is the size of the model's blobs. SHARED is the part that other models use too; removing the model
frees the rest. QUANT is the type that the weights are quantized to, or else their own.

A Go template can use .Name, .Digest, .Size and .Shared (bytes), .Type, .Quantization, .Partial (the number of blobs
that are not pulled) and .Modified (a time) of one model, and the functions json and size (formats bytes).`,
		Example: `  ingot ls 'team/*'
  ingot ls --format '{{.Name}} {{size .Size}}'
  ingot rm $(ingot ls -q)`,
		Args: cli.Between(0, -1),
		RunE: func(c *cobra.Command, args []string) error {
			template, asJSON, err := format.Parse(c)
			if err != nil {
				return err
			}
			if names && (asJSON || template != nil) {
				return cli.Usagef("--names cannot be combined with --json or --format")
			}
			store, err := store.Open("")
			if err != nil {
				return err
			}
			list, skipped, err := listed(c.Context(), store, args, names)
			if err != nil {
				return err
			}
			if skipped > 0 {
				a.Note("note: %d entries of the store's index are not listed: `ingot fsck` says why", skipped)
			}
			switch {
			case asJSON:
				return a.PrintJSON(list)
			case template != nil:
				return cli.PrintEach(a, template, list...)
			case names:
				return printNames(a, list)
			}
			return printModels(a, list)
		},
	}
	format.Add(c)
	c.Flags().BoolVarP(&names, "names", "q", false, "print names only")
	return c
}

// listed returns the models that match any of the names, and how many entries of the index cannot be listed. A name
// that is not a pattern must exist. Computing shared sizes reads every manifest, so onlyNames skips it.
func listed(ctx context.Context, st *store.Store, names []string, onlyNames bool) ([]lsEntry, int, error) {
	var wanted []func(store.Summary) bool
	for _, name := range names {
		match, err := matcher(name)
		if err != nil {
			return nil, 0, err
		}
		wanted = append(wanted, match)
	}
	all, err := st.Listing(ctx)
	if err == nil && !onlyNames {
		err = collect.Share(ctx, all)
	}
	if err != nil {
		return nil, 0, err
	}
	models := all.Models
	for i, name := range names {
		if isPattern(name) || slices.ContainsFunc(models, wanted[i]) {
			continue
		}
		want, err := manifest.ParseName(name)
		if err == nil {
			_, err = st.ResolveRaw(ctx, want) // the error suggests similar names
		}
		if err != nil {
			return nil, 0, err
		}
	}
	weights := store.PerImage(func(m store.Summary) string { return weightsType(st, m) })
	list := []lsEntry{}
	for _, m := range models {
		matches := func(match func(store.Summary) bool) bool { return match(m) }
		if len(names) == 0 || slices.ContainsFunc(wanted, matches) {
			e := newLsEntry(m)
			if !onlyNames {
				e.Quantization = weights(m)
			}
			list = append(list, e)
		}
	}
	return list, all.Skipped, nil
}

// weightsType returns the type that a model's weights are quantized to, or else their plain type. It is empty for what
// is not a model image.
func weightsType(st *store.Store, m store.Summary) string {
	entry, err := st.ReadEntry(m.Name, m.Digest)
	if err != nil {
		return ""
	}
	return strings.ToLower(cmp.Or(entry.Image.Config.Quantization, entry.Image.Config.DType))
}

// isPattern reports whether a name is a pattern. A leading bracket belongs to an IPv6 host.
func isPattern(name string) bool { return strings.ContainsAny(strings.TrimPrefix(name, "["), "*?[") }

// matcher returns a predicate for the models that a name or a pattern selects.
func matcher(name string) (func(store.Summary) bool, error) {
	if !isPattern(name) {
		want, err := manifest.ParseName(name)
		if err != nil {
			return nil, err
		}
		if !cli.HasTag(name) {
			want.Tag = ""
		}
		return func(m store.Summary) bool {
			return m.Name.Host == want.Host && m.Name.Path == want.Path && (want.Tag == "" || m.Name.Tag == want.Tag) &&
				(want.Digest == "" || m.Digest == want.Digest)
		}, nil
	}
	if _, err := path.Match(name, ""); err != nil {
		return nil, cli.Usagef("pattern %q: %v", name, err)
	}
	return func(m store.Summary) bool {
		n := m.Name
		if !cli.HasTag(name) {
			n.Tag = ""
		}
		ok, _ := path.Match(name, n.String())
		return ok
	}, nil
}

func printNames(a *cli.App, list []lsEntry) error {
	for _, m := range list {
		if _, err := fmt.Fprintln(a.Out, m.Name); err != nil {
			return err
		}
	}
	return nil
}

func printModels(a *cli.App, list []lsEntry) error {
	w := cli.NewTable(a.Out)
	w.Row("NAME", "DIGEST", "SIZE", "SHARED", "TYPE", "QUANT", "MODIFIED")
	for _, m := range list {
		kind, modified := m.Type, ""
		if m.Partial > 0 {
			kind = strings.TrimSpace(kind + " (partial)")
		}
		if !m.Modified.IsZero() { // zero if another tool wrote the entry
			modified = m.Modified.Local().Format("2006-01-02 15:04")
		}
		w.Row(m.Name, cli.Short(m.Digest), cli.Size(m.Size), cli.Size(m.Shared), kind, m.Quantization, modified)
	}
	return w.Flush()
}

type lsEntry struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`
	Size     int64     `json:"size"`
	Shared   int64     `json:"shared"`
	Type     string    `json:"type"`
	Modified time.Time `json:"modified"`
	Partial  int       `json:"partial"`

	Quantization string `json:"quantization"` // the weights' type, such as int4 or bf16
}

func newLsEntry(m store.Summary) lsEntry {
	return lsEntry{Name: m.Name.String(), Digest: m.Digest.String(), Size: m.Size, Shared: m.Shared, Type: m.ModelType,
		Modified: m.Modified, Partial: m.Partial}
}
