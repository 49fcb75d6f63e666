package cmd

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func (a *app) pruneCmd() *cobra.Command {
	var o pruneOptions
	c := &cobra.Command{
		Use:   "prune",
		Short: "Remove blobs that no model uses",
		Long: `Remove the blobs that no model uses, and what interrupted runs have left that nobody has taken up for two weeks.

On a terminal it lists what would go and asks; elsewhere it needs --yes. "ingot rm" does the same without being asked, so
there is something to prune only after models were replaced, or where a removal could not wait for other processes.`,
		Example: `  ingot prune --dry-run
  ingot prune --yes --unfinished`,
		Args: between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return a.prune(c.Context(), o) },
	}
	f := c.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "list what would go and remove nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.unfinished, "unfinished", false, "also what interrupted runs would go on with, whatever its age")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type pruneOptions struct{ dryRun, yes, unfinished, json bool }

func (a *app) prune(ctx context.Context, o pruneOptions) error {
	ask := !o.dryRun && !o.yes
	if ask && (o.json || !a.onTerminal()) {
		return usagef("prune asks on a terminal only; --yes removes, --dry-run lists what would go")
	}
	store, err := a.openStore()
	if err != nil {
		return err
	}
	options := manifest.PruneOptions{DryRun: o.dryRun || ask, Unfinished: o.unfinished}
	report, err := store.Prune(ctx, options)
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
		if report, err = store.Prune(ctx, options); err != nil {
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

func (a *app) printPruned(r manifest.PruneReport) error {
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

func newPruneJSON(r manifest.PruneReport, dryRun bool) pruneJSON {
	j := pruneJSON{DryRun: dryRun, Bytes: r.Bytes, Items: []prunedJSON{}}
	for _, item := range r.Items {
		j.Items = append(j.Items, prunedJSON{string(item.Kind), item.Name, item.Bytes})
	}
	return j
}

// onTerminal reports whether a question can be asked: both ends of it are a terminal.
func (a *app) onTerminal() bool {
	return isTerminal(a.in) && a.err.IsTerminal()
}

// confirm asks a question; anything but y or yes is no.
func (a *app) confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(a.err, "%s [y/N] ", terminal.Line(question))
	answer, err := bufio.NewReader(a.stdin(ctx)).ReadString('\n')
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	if answer == "" && err != nil {
		fmt.Fprintln(a.err) // the line ended without a key
	}
	return answer == "y" || answer == "yes", nil
}
