package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/spf13/cobra"
)

// remoteCopy are the flags of a copy between registries.
type remoteCopy struct {
	remote   bool
	allTags  bool
	transfer transferFlags
	push     registry.PushOptions
}

func (o *remoteCopy) add(c *cobra.Command) {
	o.transfer.addUpload(c)
	o.transfer.credentials.addBoth(c)
	f := c.Flags()
	f.BoolVar(&o.remote, "remote", false, "copy between registries even if the store has SRC")
	f.BoolVar(&o.allTags, "all-tags", false, "copy every tag of a repository or layout")
	f.BoolVar(&o.push.NoReferrers, "no-referrers", false, "copy no signatures and other artifacts")
}

// isRemoteCopy reports whether a copy is between registries.
func (a *app) isRemoteCopy(ctx context.Context, from, to, format string, o *remoteCopy) (bool, error) {
	if isOllama(from) || isOllama(to) {
		if o.remote {
			return false, usagef("--remote copies between registries; ollama:// is a store of this machine")
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
		return false, usagef("--remote copies between registries; %s and %s must both name one, such as "+
			"registry.example.com/me/model", from, to)
	}
	if src.IsLocal() || dst.IsLocal() {
		return false, nil
	}
	if !o.remote {
		stored, err := a.hasModel(ctx, src)
		if err == nil && stored {
			a.note("note: the store has %s, so the copy is in the store; --remote copies between the registries", src)
		}
		if err != nil || stored {
			return false, err
		}
	}
	switch {
	case hub.IsName(from):
		return false, usagef("%s is on a hub, which is no registry; use `ingot create %s %s --push`", from, to, from)
	case hub.IsName(to):
		return false, usagef("%s is on a hub, which is no registry", to)
	case format != "":
		return false, usagef("--format cannot change a model between registries; pull it, and push it with --format")
	}
	return true, nil
}

// hasModel reports whether the store has a name. A store that does not exist has none, and is not made.
func (a *app) hasModel(ctx context.Context, name manifest.Name) (bool, error) {
	st, err := store.OpenExisting("", store.Command(a.command))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = st.ResolveRaw(ctx, name)
	if errors.Is(err, manifest.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// copyRemote copies a model between registries.
func (a *app) copyRemote(ctx context.Context, from, to string, asJSON bool, o remoteCopy) error {
	src, err := manifest.ParseName(from)
	if err != nil {
		return err
	}
	dst, err := manifest.ParseName(to)
	if err != nil {
		return err
	}
	bar := a.transferProgress("copy", asJSON)
	defer bar.end()
	client, err := a.client(&o.transfer, bar.set)
	if err != nil {
		return err
	}
	d, err := client.Copy(ctx, src, dst, o.push)
	bar.end()
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(transferJSON{dst.String(), d.String(), bar.counts()})
	}
	_, err = fmt.Fprintf(a.out, "%s@%s\n", dst, d)
	return err
}
