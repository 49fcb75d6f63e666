package store

import (
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/spf13/cobra"
)

func dfCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "df",
		Short: "Show the store's disk usage",
		Long: `Show the store's disk usage: models and blobs, what several models share, what "ingot prune" would
free, and the partial work of interrupted runs ("ingot prune --unfinished" removes that too). "ingot prune"
also removes the cached scores of "ingot verify --against".`,
		Args: cli.Between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			store, err := store.Open("")
			if err != nil {
				return err
			}
			u, err := collect.UsageOf(c.Context(), store)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(newDfJSON(store, u))
			}
			if u.Damage != "" {
				a.Note("note: nothing can be reclaimed: %s; see `ingot fsck`", u.Damage)
			}
			return printUsage(a, store, u)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

type dfJSON struct {
	Path             string `json:"path"`
	Models           int    `json:"models"`
	Blobs            int    `json:"blobs"`
	Bytes            int64  `json:"bytes"`
	SharedBytes      int64  `json:"shared_bytes"`
	SavedBytes       int64  `json:"saved_bytes"`
	ReclaimableBlobs int    `json:"reclaimable_blobs"`
	ReclaimableBytes int64  `json:"reclaimable_bytes"`
	Unfinished       int    `json:"unfinished"`
	UnfinishedBytes  int64  `json:"unfinished_bytes"`
	QuarantinedBytes int64  `json:"quarantined_bytes"`
	Damage           string `json:"damage,omitempty"`
	ScoresBytes      int64  `json:"scores_bytes"` // cached logits of comparisons; prune removes them
}

func newDfJSON(s *store.Store, u collect.Usage) dfJSON {
	return dfJSON{s.Root(), u.Models, u.Blobs, u.Bytes, u.SharedBytes, u.SavedBytes, u.ReclaimableBlobs,
		u.ReclaimableBytes,
		u.Unfinished, u.UnfinishedBytes, u.QuarantinedBytes, u.Damage, u.ScoresBytes}
}

func printUsage(a *cli.App, s *store.Store, u collect.Usage) error {
	w := cli.NewTable(a.Out)
	line := func(what, value string) { w.Row(what, value) }
	line("store", s.Root())
	line("models", fmt.Sprint(u.Models))
	line("blobs", fmt.Sprintf("%d, %s", u.Blobs, cli.Size(u.Bytes)))
	line("shared", fmt.Sprintf("%s (saves %s)", cli.Size(u.SharedBytes), cli.Size(u.SavedBytes)))
	line("reclaimable", fmt.Sprintf("%s in %d unreferenced blobs", cli.Size(u.ReclaimableBytes), u.ReclaimableBlobs))
	line("unfinished", fmt.Sprintf("%s of %d interrupted runs", cli.Size(u.UnfinishedBytes), u.Unfinished))
	if u.ScoresBytes > 0 {
		line("scores", cli.Size(u.ScoresBytes)+" of cached comparisons")
	}
	if u.QuarantinedBytes > 0 {
		line("quarantine", cli.Size(u.QuarantinedBytes))
	}
	return w.Flush()
}
