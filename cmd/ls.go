package cmd

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func (a *app) lsCmd() *cobra.Command {
	var format formatFlags
	var names bool
	c := &cobra.Command{
		Use:     "ls [NAME]...",
		Aliases: []string{"list"},
		Short:   "List the models in the store",
		Long: `List the models in the store, or those with the names. A name may be a pattern in quotes, in which * and ? stand for
anything but a slash; one without a tag means every tag.

SIZE is what the model's blobs take, SHARED how much of that other names use too: removing the model frees the rest.

A Go template sees .Name, .Digest, .Size and .Shared (bytes), .Type, .Partial (blobs that were not pulled) and
.Modified (a time) of one model, and the functions json and size (bytes for people).`,
		Example: `  ingot ls 'team/*'
  ingot ls --format '{{.Name}} {{size .Size}}'
  ingot rm $(ingot ls -q)`,
		Args: between(0, -1),
		RunE: func(c *cobra.Command, args []string) error {
			template, asJSON, err := format.parse(c)
			if err != nil {
				return err
			}
			if names && (asJSON || template != nil) {
				return usagef("--names excludes --json and --format")
			}
			store, err := manifest.Open("")
			if err != nil {
				return err
			}
			list, err := listed(c.Context(), store, args, names)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return a.printJSON(list)
			case template != nil:
				return printEach(a, template, list...)
			case names:
				return a.printNames(list)
			}
			return a.printModels(list)
		},
	}
	format.add(c)
	c.Flags().BoolVarP(&names, "names", "q", false, "print names only")
	return c
}

// listed gives the models that any of the names means. A name that is no pattern has to be there. Sizes that are shared take
// a look at every manifest, and are left out where only names are wanted.
func listed(ctx context.Context, store *manifest.Store, names []string, onlyNames bool) ([]lsEntry, error) {
	var wanted []func(manifest.Summary) bool
	for _, name := range names {
		match, err := matcher(name)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, match)
	}
	read := store.ListShared
	if onlyNames {
		read = store.List
	}
	models, err := read(ctx)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if isPattern(name) || slices.ContainsFunc(models, wanted[i]) {
			continue
		}
		want, err := manifest.ParseName(name)
		if err == nil {
			_, err = store.ResolveRaw(ctx, want) // says what the name resembles
		}
		if err != nil {
			return nil, err
		}
	}
	list := []lsEntry{}
	for _, m := range models {
		if len(names) == 0 || slices.ContainsFunc(wanted, func(match func(manifest.Summary) bool) bool { return match(m) }) {
			list = append(list, newLsEntry(m))
		}
	}
	return list, nil
}

// isPattern reports whether a name may mean several. One that begins with a bracket has an IPv6 address for its host.
func isPattern(name string) bool { return strings.ContainsAny(strings.TrimPrefix(name, "["), "*?[") }

// matcher tells which models a name or a pattern means.
func matcher(name string) (func(manifest.Summary) bool, error) {
	if !isPattern(name) {
		want, err := manifest.ParseName(name)
		if err != nil {
			return nil, err
		}
		if !hasTag(name) {
			want.Tag = ""
		}
		return func(m manifest.Summary) bool {
			return m.Name.Host == want.Host && m.Name.Path == want.Path && (want.Tag == "" || m.Name.Tag == want.Tag) &&
				(want.Digest == "" || m.Digest == want.Digest)
		}, nil
	}
	if _, err := path.Match(name, ""); err != nil {
		return nil, usagef("pattern %q: %v", name, err)
	}
	return func(m manifest.Summary) bool {
		n := m.Name
		if !hasTag(name) {
			n.Tag = ""
		}
		ok, _ := path.Match(name, n.String())
		return ok
	}, nil
}

// hasTag reports whether a colon comes after the last slash.
func hasTag(name string) bool {
	name, _, _ = strings.Cut(name, "@")
	return strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/')
}

func (a *app) printNames(list []lsEntry) error {
	for _, m := range list {
		if _, err := fmt.Fprintln(a.out, m.Name); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printModels(list []lsEntry) error {
	w := newTable(a.out)
	w.row("NAME", "DIGEST", "SIZE", "SHARED", "TYPE", "MODIFIED")
	for _, m := range list {
		kind, modified := m.Type, ""
		if m.Partial > 0 {
			kind = strings.TrimSpace(kind + " (partial)")
		}
		if !m.Modified.IsZero() { // another tool wrote the entry
			modified = m.Modified.Local().Format(time.DateTime)
		}
		w.row(m.Name, short(m.Digest), size(m.Size), size(m.Shared), kind, modified)
	}
	return w.flush()
}

type lsEntry struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`
	Size     int64     `json:"size"`
	Shared   int64     `json:"shared"`
	Type     string    `json:"type"`
	Modified time.Time `json:"modified"`
	Partial  int       `json:"partial"`
}

func newLsEntry(m manifest.Summary) lsEntry {
	return lsEntry{m.Name.String(), m.Digest.String(), m.Size, m.Shared, m.ModelType, m.Modified, m.Partial}
}
