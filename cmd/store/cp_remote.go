package store

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/spf13/cobra"
)

// remoteCopy are the flags of a copy between registries.
type remoteCopy struct {
	remote   bool
	allTags  bool
	transfer transfer.Flags
	push     registry.PushOptions
}

func (o *remoteCopy) add(c *cobra.Command) {
	o.transfer.AddUpload(c)
	o.transfer.Credentials.AddBoth(c)
	f := c.Flags()
	f.BoolVar(&o.remote, "remote", false, "copy between registries even if the store has SRC")
	f.BoolVar(&o.allTags, "all-tags", false, "copy every tag of a repository or layout")
	f.BoolVar(&o.push.NoReferrers, "no-referrers", false, "copy no signatures and other artifacts")
}

// isRemoteCopy reports whether a copy is between registries.
func isRemoteCopy(ctx context.Context, a *cli.App, from, to, format string, o *remoteCopy) (bool, error) {
	if isOllama(from) || isOllama(to) {
		if o.remote {
			return false, cli.Usagef("--remote copies between registries; ollama:// is a store of this machine")
		}
		return false, nil
	}
	src, err := manifest.ParseName(from)
	if err != nil {
		return false, err
	}
	dst, err := manifest.ParseName(to)
	if err != nil {
		return false, err
	}
	if o.remote && (src.IsLocal() || dst.IsLocal()) {
		return false, cli.Usagef("--remote copies between registries; %s and %s must both name one, such as "+
			"registry.example.com/me/model", from, to)
	}
	if src.IsLocal() || dst.IsLocal() {
		return false, nil
	}
	if !o.remote {
		stored, err := models.Has(ctx, a, src)
		if err == nil && stored {
			a.Note("note: the store has %s, so the copy is in the store; --remote copies between the registries", src)
		}
		if err != nil || stored {
			return false, err
		}
	}
	switch {
	case hub.IsName(from):
		return false, cli.Usagef("%s is on a hub, which is no registry; use `ingot create %s %s --push`", from, to, from)
	case hub.IsName(to):
		return false, cli.Usagef("%s is on a hub, which is no registry", to)
	case format != "":
		return false, cli.Usagef("--format cannot change a model between registries; pull it, and push it with --format")
	}
	return true, nil
}

// copyRemote copies a model between registries.
func copyRemote(ctx context.Context, a *cli.App, from, to string, asJSON bool, o remoteCopy) error {
	src, err := manifest.ParseName(from)
	if err != nil {
		return err
	}
	dst, err := manifest.ParseName(to)
	if err != nil {
		return err
	}
	bar := transfer.NewProgress(a, "copy", asJSON)
	defer bar.End()
	client, err := transfer.NewClient(a, &o.transfer, bar.Set)
	if err != nil {
		return err
	}
	d, err := client.Copy(ctx, src, dst, o.push)
	bar.End()
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(transfer.ResultJSON{Name: dst.String(), Digest: d.String(), Counts: bar.Counts()})
	}
	_, err = fmt.Fprintf(a.Out, "%s@%s\n", dst, d)
	return err
}
