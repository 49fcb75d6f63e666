package store

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/registry/layout"
)

// layoutJSON is the result of a copy from or to a layout.
type layoutJSON struct {
	transfer.ResultJSON
	Linked int64 `json:"linked_bytes"`
	Cloned int64 `json:"cloned_bytes"`
}

// copyLayout copies a model from or to a layout or an archive.
func copyLayout(ctx context.Context, a *cli.App, from, to, format string, asJSON bool, o *remoteCopy) error {
	if format != "" {
		return cli.Usagef("--format cannot change a model in a layout; convert it in the store with "+
			"`ingot cp NAME NAME --format %s`", format)
	}
	src, err := copyPlace(ctx, a, from, true, o)
	if err != nil {
		return err
	}
	dst, err := copyPlace(ctx, a, to, false, o)
	if err != nil {
		return err
	}
	bar := transfer.NewProgress(a, "copy", asJSON)
	defer bar.End()
	client, err := transfer.NewClient(a, &o.transfer, bar.Set)
	if err != nil {
		return err
	}
	result, err := layout.Copy(ctx, client, src, dst, layout.Options{Push: o.push})
	bar.End()
	if err != nil && src.Store != nil {
		err = models.ListAbsent(ctx, src.Store, src.Name, err)
	}
	if err != nil {
		return err
	}
	if asJSON {
		counts := transfer.ResultJSON{Name: result.Name, Digest: result.Digest.String(), Counts: bar.Counts()}
		return a.PrintJSON(layoutJSON{counts, result.Linked, result.Cloned})
	}
	_, err = fmt.Fprintf(a.Out, "%s@%s\n", result.Name, result.Digest)
	return err
}

// copyPlace finds the source or the destination of a copy from or to a layout. A name with a registry is there, but a
// source that the store has is taken from the store, unless --remote is given.
func copyPlace(ctx context.Context, a *cli.App, s string, source bool, o *remoteCopy) (layout.Place, error) {
	if layout.IsRef(s) {
		ref, err := layout.ParseRef(s)
		if err != nil {
			return layout.Place{}, cli.Usagef("%v", err)
		}
		if !source && ref.Digest != "" {
			return layout.Place{}, cli.Usagef("%s: a destination has no digest", s)
		}
		return layout.Place{Layout: &ref}, nil
	}
	switch {
	case isOllama(s):
		return layout.Place{}, cli.Usagef("%s: copy between Ollama's store and a layout by way of ingot's store", s)
	case hub.IsName(s):
		return layout.Place{}, cli.Usagef("%s is on a hub, which is no registry; use `ingot create NAME %[1]s`", s)
	}
	name, err := manifest.ParseName(s)
	if err != nil {
		return layout.Place{}, err
	}
	place := layout.Place{Name: name}
	inStore := name.IsLocal()
	if inStore && o.remote {
		return place, cli.Usagef("--remote copies from or to a registry; %s must name one, such as "+
			"registry.example.com/me/model", s)
	}
	if source && !inStore && !o.remote {
		if inStore, err = models.Has(ctx, a, name); err != nil {
			return place, err
		}
	}
	if inStore {
		place.Store, err = openStoreFor(a, source)
	}
	return place, err
}

// openStoreFor opens the store, which need not exist yet unless it is the source.
func openStoreFor(a *cli.App, source bool) (*store.Store, error) {
	if source {
		return store.OpenExisting("", store.Command(a.Command))
	}
	return a.OpenStore()
}
