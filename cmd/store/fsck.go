package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/fsck"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"
)

func fsckCommand(a *cli.App) *cobra.Command {
	var o fsckOptions
	c := &cobra.Command{
		Use:   "fsck",
		Short: "Check the store and repair it",
		Long: `Check the store: hash every blob, and check that each name has all the blobs that it needs. The
problems are printed with the models that they break, and the exit code is 1. Files that other
processes are writing and blobs that a partial pull left out are not problems.

--repair fixes what it can. It moves corrupt blobs and stray files to the folder quarantine in the
store, and restores file modes. It fetches corrupt and missing blobs again if the model was pulled from
or pushed to a registry. It deletes only temporary files older than an hour. It locks the store, and
waits five seconds for other processes. The exit code is 1 if problems remain.`,
		Args: cli.Between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return checkStore(c.Context(), a, o) },
	}
	f := c.Flags()
	f.BoolVar(&o.repair, "repair", false, "fix problems where possible")
	f.BoolVar(&o.json, "json", false, "print JSON, with progress as JSON lines")
	o.transfer.AddConnection(c)
	return c
}

type fsckOptions struct {
	repair, json bool
	transfer     transfer.Flags
}

func checkStore(ctx context.Context, a *cli.App, o fsckOptions) error {
	store, err := store.OpenExisting("", store.Command(a.Command))
	if err != nil {
		return err
	}
	bar := cli.ByteProgress{Progress: a.Progress(o.json), Verb: "checking"}
	options := fsck.Options{Repair: o.repair, Progress: bar.Set}
	if o.repair {
		client, err := transfer.NewClient(a, &o.transfer, nil)
		if err != nil {
			return err
		}
		options.Fetch = func(ctx context.Context, name manifest.Name, desc ocispec.Descriptor) error {
			bar.End()
			if !o.json {
				a.Note("fetching %s (%s) of %s", desc.Digest, cli.Size(desc.Size), name)
			}
			return client.FetchBlob(ctx, store, name, desc)
		}
	}
	report, err := fsck.Run(ctx, store, options)
	bar.End()
	if err != nil {
		return err
	}
	if o.json {
		err = a.PrintJSON(newFsckJSON(report))
	} else {
		err = printFsck(a, report)
	}
	if err == nil && !report.OK() {
		err = cli.ErrFailed
	}
	return err
}

type fsckJSON struct {
	OK              bool          `json:"ok"`
	Models          int           `json:"models"`
	Blobs           int           `json:"blobs"`
	Bytes           int64         `json:"bytes"`
	Seconds         float64       `json:"seconds"`
	Unnamed         int           `json:"unnamed"`
	Unfinished      int           `json:"unfinished"`
	UnfinishedBytes int64         `json:"unfinished_bytes"`
	Problems        []problemJSON `json:"problems"`
}

type problemJSON struct {
	Kind    string   `json:"kind"`
	Path    string   `json:"path"`
	Digest  string   `json:"digest,omitempty"`
	Detail  string   `json:"detail"`
	Models  []string `json:"models"`
	Actions []string `json:"actions"`
	Fixed   bool     `json:"fixed"`
}

func newFsckJSON(r fsck.Report) fsckJSON {
	j := fsckJSON{OK: r.OK(), Models: r.Models, Blobs: r.Blobs, Bytes: r.Bytes, Seconds: r.Hashing.Seconds(),
		Unnamed: r.Unnamed, Unfinished: r.Unfinished, UnfinishedBytes: r.UnfinishedBytes, Problems: []problemJSON{}}
	for _, p := range r.Problems {
		j.Problems = append(j.Problems, problemJSON{string(p.Kind), p.Path, string(p.Digest), p.Detail,
			append([]string{}, p.Models...), append([]string{}, p.Actions...), p.Fixed})
	}
	return j
}

func printFsck(a *cli.App, r fsck.Report) error {
	w := cli.NewTable(a.Out)
	broken := map[string]bool{}
	left := 0
	for _, p := range r.Problems {
		text := p.Detail
		if len(p.Models) > 0 {
			text += "; breaks " + strings.Join(p.Models, ", ")
		}
		for _, done := range p.Actions {
			text += "; " + done
		}
		w.Row(string(p.Kind), p.Path, text)
		if p.Fixed {
			continue
		}
		left++
		for _, m := range p.Models {
			broken[m] = true
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	speed := ""
	if s := r.Hashing.Seconds(); s > 0 && r.Bytes > 0 {
		speed = fmt.Sprintf(", %s/s", cli.Size(int64(float64(r.Bytes)/s)))
	}
	text := fmt.Sprintf("%d models, %d blobs, %s in %s%s: ", r.Models, r.Blobs, cli.Size(r.Bytes),
		r.Hashing.Round(10*time.Millisecond), speed)
	switch {
	case left == 0 && len(r.Problems) == 0:
		text += "no problems"
	case left == 0:
		text += fmt.Sprintf("%d problems, all fixed", len(r.Problems))
	default:
		text += fmt.Sprintf("%d problems, %d not fixed, %d models broken", len(r.Problems), left, len(broken))
	}
	if r.Unnamed > 0 {
		what := "which `ingot prune` removes"
		if slices.ContainsFunc(r.Problems, func(p fsck.Problem) bool { return p.Path == ocispec.ImageIndexFile }) {
			what = "which --repair names"
		}
		text += fmt.Sprintf("; %d images without a name, %s", r.Unnamed, what)
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}
