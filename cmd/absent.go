package cmd

import (
	"cmp"
	"context"
	"errors"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
)

// listAbsent replaces an error about one missing blob by an error that lists all missing blobs of the model.
func listAbsent(ctx context.Context, store *store.Store, name manifest.Name, err error) error {
	if !errors.Is(err, manifest.ErrBlobMissing) {
		return err
	}
	entry, failed := store.Resolve(ctx, name)
	if failed != nil {
		return err
	}
	return cmp.Or(store.CheckPresent(entry, true), err)
}
