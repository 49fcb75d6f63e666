package models

import (
	"context"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/opencontainers/go-digest"
)

// PullOptions say how a model is pulled.
type PullOptions struct {
	Pull     registry.PullOptions
	Transfer transfer.Flags
	JSON     bool
	// Require returns a check of the manifest, which runs before the model is pulled. It may be nil. warn receives
	// warnings.
	Require func(
		ctx context.Context, client *registry.Client, st *store.Store, name manifest.Name, warn func(registry.Event),
	) (Check, error)
}

// Check accepts or rejects the manifest with a digest.
type Check = func(context.Context, digest.Digest) error

// Pull pulls a model and shows progress.
func Pull(ctx context.Context, a *cli.App, name manifest.Name, o PullOptions) (*registry.PullResult, *transfer.Progress,
	error) {
	progress := transfer.NewProgress(a, "pull", o.JSON)
	defer progress.End()
	client, err := transfer.NewClient(a, &o.Transfer, progress.Set)
	if err != nil {
		return nil, nil, err
	}
	store, err := a.OpenStore()
	if err != nil {
		return nil, nil, err
	}
	if o.Require != nil {
		if o.Pull.Verify, err = o.Require(ctx, client, store, name, progress.Set); err != nil {
			return nil, nil, err
		}
	}
	o.Pull.Files = true
	result, err := client.Pull(ctx, store, name, o.Pull)
	if err == nil && result.Files != nil {
		progress.End()
		err = convertPulled(ctx, a, store, result, o.JSON)
	}
	return result, progress, err
}

// PullModel pulls a model to run it. An image that holds none is refused before it is downloaded.
func PullModel(ctx context.Context, a *cli.App, name manifest.Name) error {
	_, _, err := Pull(ctx, a, name, PullOptions{Pull: registry.PullOptions{Model: true}})
	return err
}
