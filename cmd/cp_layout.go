package cmd

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/registry/layout"
)

// layoutJSON is the result of a copy from or to a layout.
type layoutJSON struct {
	transferJSON
	Linked int64 `json:"linked_bytes"`
	Cloned int64 `json:"cloned_bytes"`
}

// copyLayout copies a model from or to a layout or an archive.
func (a *app) copyLayout(ctx context.Context, from, to, format string, asJSON bool, o *remoteCopy) error {
	if format != "" {
		return usagef("--format cannot change a model in a layout; convert it in the store with "+
			"`ingot cp NAME NAME --format %s`", format)
	}
	src, err := a.copyPlace(ctx, from, true, o)
	if err != nil {
		return err
	}
	dst, err := a.copyPlace(ctx, to, false, o)
	if err != nil {
		return err
	}
	bar := a.transferProgress("copy", asJSON)
	defer bar.end()
	client, err := a.client(&o.transfer, bar.set)
	if err != nil {
		return err
	}
	result, err := layout.Copy(ctx, client, src, dst, layout.Options{Push: o.push})
	bar.end()
	if err != nil && src.Store != nil {
		err = listAbsent(ctx, src.Store, src.Name, err)
	}
	if err != nil {
		return err
	}
	if asJSON {
		counts := transferJSON{result.Name, result.Digest.String(), bar.counts()}
		return a.printJSON(layoutJSON{counts, result.Linked, result.Cloned})
	}
	_, err = fmt.Fprintf(a.out, "%s@%s\n", result.Name, result.Digest)
	return err
}

// copyPlace finds the source or the destination of a copy from or to a layout. A name with a registry is there, but a
// source that the store has is taken from the store, unless --remote is given.
func (a *app) copyPlace(ctx context.Context, s string, source bool, o *remoteCopy) (layout.Place, error) {
	if layout.IsRef(s) {
		ref, err := layout.ParseRef(s)
		if err != nil {
			return layout.Place{}, usagef("%v", err)
		}
		if !source && ref.Digest != "" {
			return layout.Place{}, usagef("%s: a destination has no digest", s)
		}
		return layout.Place{Layout: &ref}, nil
	}
	switch {
	case isOllama(s):
		return layout.Place{}, usagef("%s: copy between Ollama's store and a layout by way of ingot's store", s)
	case hub.IsName(s):
		return layout.Place{}, usagef("%s is on a hub, which is no registry; use `ingot create NAME %[1]s`", s)
	}
	name, err := manifest.ParseName(s)
	if err != nil {
		return layout.Place{}, err
	}
	place := layout.Place{Name: name}
	inStore := name.IsLocal()
	if inStore && o.remote {
		return place, usagef("--remote copies from or to a registry; %s must name one, such as "+
			"registry.example.com/me/model", s)
	}
	if source && !inStore && !o.remote {
		if inStore, err = a.hasModel(ctx, name); err != nil {
			return place, err
		}
	}
	if inStore {
		place.Store, err = a.openStoreFor(source)
	}
	return place, err
}

// openStoreFor opens the store, which need not exist yet unless it is the source.
func (a *app) openStoreFor(source bool) (*store.Store, error) {
	if source {
		return store.OpenExisting("", store.Command(a.command))
	}
	return a.openStore()
}
