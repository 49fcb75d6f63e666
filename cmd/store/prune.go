package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/spf13/cobra"
)

func pruneCommand(a *cli.App) *cobra.Command {
	var o pruneOptions
	c := &cobra.Command{
		Use:   "prune",
		Short: "Remove blobs that no model uses",
		Long: `Remove the blobs that no model uses, the partial work of interrupted runs that were not resumed for
two weeks, the cached scores of "ingot verify --against", and a worker's parts of models that no server
used for two weeks, unless a worker runs.

On a terminal, prune lists what it would remove and asks; elsewhere it requires --yes. "ingot rm" removes
unused blobs itself, so there is something to prune only after models were replaced, or if a removal
could not wait for other processes.`,
		Example: `  ingot prune --dry-run
  ingot prune --yes --unfinished`,
		Args: cli.Between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return prune(c.Context(), a, o) },
	}
	f := c.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "list what would be deleted, and delete nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "delete without asking")
	f.BoolVar(&o.unfinished, "unfinished", false, "delete all partial work and all parts of models too")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type pruneOptions struct{ dryRun, yes, unfinished, json bool }

func prune(ctx context.Context, a *cli.App, o pruneOptions) error {
	ask := !o.dryRun && !o.yes
	if ask && (o.json || !a.OnTerminal()) {
		return cli.Usagef("not a terminal: pass --yes to delete, or --dry-run to list what would be deleted")
	}
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	options := collect.PruneOptions{DryRun: o.dryRun || ask, Unfinished: o.unfinished}
	report, err := pruneStore(ctx, a, st, options)
	if err != nil {
		return err
	}
	if ask && len(report.Items) > 0 {
		if err := printPruned(a, report); err != nil {
			return err
		}
		yes, err := a.Confirm(ctx, fmt.Sprintf("Remove %s?", cli.Size(report.Bytes)))
		if err != nil {
			return err
		}
		if !yes {
			a.Note("nothing removed")
			return nil
		}
		options.DryRun = false
		if report, err = pruneStore(ctx, a, st, options); err != nil {
			return err
		}
	}
	switch {
	case o.json:
		return a.PrintJSON(newPruneJSON(report, o.dryRun))
	case len(report.Items) == 0:
		a.Note("nothing to prune")
		return nil
	case o.dryRun:
		err = printPruned(a, report)
		a.Note("%s would be freed", cli.Size(report.Bytes))
		return err
	case o.yes:
		err = printPruned(a, report)
	}
	a.Note("%s freed", cli.Size(report.Bytes))
	return err
}

// prunedParts is the kind of a worker's parts of a model.
const prunedParts collect.PrunedKind = "parts"

// pruneStore prunes a store and the parts of models in it.
func pruneStore(ctx context.Context, a *cli.App, s *store.Store, o collect.PruneOptions) (collect.PruneReport, error) {
	r, err := collect.Prune(ctx, s, o)
	if err != nil {
		return r, err
	}
	parts, err := shards.Prune(ctx, s, shards.PruneOptions{DryRun: o.DryRun, All: o.Unfinished})
	var busy *lock.BusyError
	if errors.As(err, &busy) {
		a.Note("a worker runs: its parts of models stay")
		return r, nil
	}
	for _, p := range parts {
		r.Items = append(r.Items, collect.Pruned{Kind: prunedParts, Name: string(p.Image), Bytes: p.Bytes})
		r.Bytes += p.Bytes
	}
	return r, err
}

func printPruned(a *cli.App, r collect.PruneReport) error {
	w := cli.NewTable(a.Out)
	for _, item := range r.Items {
		w.Row(string(item.Kind), item.Name, cli.Size(item.Bytes))
	}
	return w.Flush()
}

type pruneJSON struct {
	DryRun bool         `json:"dry_run"`
	Bytes  int64        `json:"bytes"`
	Items  []prunedJSON `json:"items"`
}

type prunedJSON struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

func newPruneJSON(r collect.PruneReport, dryRun bool) pruneJSON {
	j := pruneJSON{DryRun: dryRun, Bytes: r.Bytes, Items: []prunedJSON{}}
	for _, item := range r.Items {
		j.Items = append(j.Items, prunedJSON{string(item.Kind), item.Name, item.Bytes})
	}
	return j
}
