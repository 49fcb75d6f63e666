package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/spf13/cobra"
)

func (a *app) pruneCmd() *cobra.Command {
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
		Args: between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return a.prune(c.Context(), o) },
	}
	f := c.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "list what would be deleted, and delete nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "delete without asking")
	f.BoolVar(&o.unfinished, "unfinished", false, "delete all partial work and all parts of models too")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type pruneOptions struct{ dryRun, yes, unfinished, json bool }

func (a *app) prune(ctx context.Context, o pruneOptions) error {
	ask := !o.dryRun && !o.yes
	if ask && (o.json || !a.onTerminal()) {
		return usagef("not a terminal: pass --yes to delete, or --dry-run to list what would be deleted")
	}
	st, err := a.openStore()
	if err != nil {
		return err
	}
	options := collect.PruneOptions{DryRun: o.dryRun || ask, Unfinished: o.unfinished}
	report, err := a.pruneStore(ctx, st, options)
	if err != nil {
		return err
	}
	if ask && len(report.Items) > 0 {
		if err := a.printPruned(report); err != nil {
			return err
		}
		yes, err := a.confirm(ctx, fmt.Sprintf("Remove %s?", size(report.Bytes)))
		if err != nil {
			return err
		}
		if !yes {
			a.note("nothing removed")
			return nil
		}
		options.DryRun = false
		if report, err = a.pruneStore(ctx, st, options); err != nil {
			return err
		}
	}
	switch {
	case o.json:
		return a.printJSON(newPruneJSON(report, o.dryRun))
	case len(report.Items) == 0:
		a.note("nothing to prune")
		return nil
	case o.dryRun:
		err = a.printPruned(report)
		a.note("%s would be freed", size(report.Bytes))
		return err
	case o.yes:
		err = a.printPruned(report)
	}
	a.note("%s freed", size(report.Bytes))
	return err
}

// prunedParts is the kind of a worker's parts of a model.
const prunedParts collect.PrunedKind = "parts"

// pruneStore prunes a store and the parts of models in it.
func (a *app) pruneStore(ctx context.Context, s *store.Store, o collect.PruneOptions) (collect.PruneReport, error) {
	r, err := collect.Prune(ctx, s, o)
	if err != nil {
		return r, err
	}
	parts, err := shards.Prune(ctx, s, shards.PruneOptions{DryRun: o.DryRun, All: o.Unfinished})
	var busy *lock.BusyError
	if errors.As(err, &busy) {
		a.note("a worker runs: its parts of models stay")
		return r, nil
	}
	for _, p := range parts {
		r.Items = append(r.Items, collect.Pruned{Kind: prunedParts, Name: string(p.Image), Bytes: p.Bytes})
		r.Bytes += p.Bytes
	}
	return r, err
}

func (a *app) printPruned(r collect.PruneReport) error {
	w := newTable(a.out)
	for _, item := range r.Items {
		w.row(string(item.Kind), item.Name, size(item.Bytes))
	}
	return w.flush()
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

// onTerminal reports whether the program can ask a question: standard input and standard error are terminals.
func (a *app) onTerminal() bool {
	return isTerminal(a.in) && a.err.IsTerminal()
}

// confirm asks a yes-no question. The default is no.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.err, "%s [y/N] ", terminal.Line(question))
	reply, err := bufio.NewReader(a.stdin(ctx)).ReadString('\n')
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	reply = strings.ToLower(strings.TrimSpace(reply))
	if reply == "" && err != nil {
		fmt.Fprintln(a.err) // end of input without Enter: end the line of the question
	}
	return reply == "y" || reply == "yes", nil
}
