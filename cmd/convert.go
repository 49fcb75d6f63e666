package cmd

import (
	"context"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
)

// convert makes an image, on all cores, and shows progress.
func (a *app) convert(
	ctx context.Context, st *store.Store, name manifest.Name, from *modelfile.File, options convert.Options, json bool,
) (convert.Result, error) {
	bar := a.createProgress(json)
	options.Progress = bar.set
	cores, restore := oversubscribe()
	defer restore()
	options.Parallel = cores
	result, err := convert.Create(ctx, st, name, from, options)
	bar.end()
	for _, w := range result.Warnings {
		a.note("note: %s", w)
	}
	return result, err
}
