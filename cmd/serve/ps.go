package serve

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/servers"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/ollama"
	"github.com/spf13/cobra"
)

func psCommand(a *cli.App) *cobra.Command {
	var asJSON, verbose bool
	var flags servers.Flags
	c := &cobra.Command{
		Use:   "ps",
		Short: "List the models that the server has loaded",
		Long: `List the models that the server has loaded or is loading. SIZE is the memory that the model may use.
UNTIL is when the model is unloaded if it gets no requests.

-v adds the process ID, the running and the waiting requests, the size of their KV caches, the size of the
prefix cache, the share of prompt tokens that were found in the prefix cache (REUSED), and the ranks that
divide the model, with the weights of each and, of workers, what rank 0 has sent to others.`,
		Args: cli.Between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			path := "/api/ps"
			if verbose {
				path += "?verbose=true"
			}
			client, err := servers.New(a, flags)
			if err != nil {
				return err
			}
			var list ollama.PsJSON
			if err := client.Get(c.Context(), http.MethodGet, path, nil, &list); err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(list.Models)
			}
			return printPs(a, list.Models, verbose)
		},
	}
	f := c.Flags()
	f.BoolVarP(&verbose, "verbose", "v", false, "also print processes, requests and caches")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	flags.Add(c)
	return c
}

func printPs(a *cli.App, list []ollama.PsModel, verbose bool) error {
	w := cli.NewTable(a.Out)
	head := []string{"NAME", "DIGEST", "SIZE", "REQUESTS", "UNTIL"}
	if verbose {
		head = append(head, "PID", "RUNNING", "WAITING", "KV CACHE", "PREFIX CACHE", "REUSED", "RANKS")
	}
	w.Row(head...)
	for _, m := range list {
		cells := []string{m.Name, cli.Short(m.Digest), cli.Size(m.Size), strconv.Itoa(m.Requests), until(m, time.Now())}
		if verbose {
			cells = append(cells, usageCells(m)...)
		}
		w.Row(cells...)
	}
	return w.Flush()
}

// usageCells returns the cells of --verbose: process, requests, KV memory, prefix cache, and the share of prompt tokens
// found in that cache.
func usageCells(m ollama.PsModel) []string {
	u := m.Usage
	if u == nil {
		return []string{strconv.Itoa(m.PID), "-", "-", "-", "-", "-", "-"}
	}
	cached, reused := "off", "-"
	if p := u.Prefix; p != nil {
		cached = cli.Size(p.Bytes)
		if u.Disk != nil {
			cached += " + " + cli.Size(u.Disk.Bytes) + " on disk"
		}
		if p.Keys > 0 {
			reused = fmt.Sprintf("%.0f%% of %d tokens", 100*float64(p.Cached)/float64(p.Keys), p.Keys)
		}
	}
	return []string{strconv.Itoa(m.PID), strconv.Itoa(u.Running), strconv.Itoa(u.Waiting), cli.Size(u.State), cached,
		reused,
		ranksCell(u)}
}

// ranksCell returns the number of ranks of a divided model, and the weights of each.
// With workers, it also has the traffic of rank 0.
func ranksCell(u *runtime.Usage) string {
	all := u.Ranks
	if len(all) == 0 {
		return "1"
	}
	var weights []string
	for _, r := range all {
		weights = append(weights, cli.Size(r.Weights))
	}
	cell := fmt.Sprintf("%d: %s", len(all), strings.Join(weights, ", "))
	if u.Ring != nil {
		cell += fmt.Sprintf("; sent %s", cli.Size(u.Ring.Sent))
	}
	return cell
}

// until describes when a model will be unloaded.
func until(m ollama.PsModel, now time.Time) string {
	left := m.ExpiresAt.Sub(now)
	switch {
	case m.Loaded < 1:
		return fmt.Sprintf("loading, %.0f%%", 100*m.Loaded)
	case m.Requests > 0:
		return "in use"
	case m.Stays:
		return "it is stopped"
	case left > 365*24*time.Hour:
		return "memory is needed"
	}
	return fmt.Sprintf("%s from now", max(left, 0).Round(time.Second))
}
