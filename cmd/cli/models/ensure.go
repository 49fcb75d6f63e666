package models

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/registry/hub"
)

// Ensure makes sure that the store has a model, and returns its name there. If it is missing and its name has a hub or
// a registry, ensure imports or pulls it, after asking on a terminal, or with yes. ready is called before that; it
// reports what would make the import useless.
func Ensure(ctx context.Context, a *cli.App, arg string, yes bool, ready func() error) (string, error) {
	name, err := ParseName(arg)
	if err != nil {
		return "", err
	}
	if name.IsLocal() {
		return arg, nil
	}
	st, err := store.Open("")
	if err != nil {
		return "", err
	}
	_, missing := st.ResolveRaw(ctx, name)
	switch {
	case !errors.Is(missing, manifest.ErrNotFound):
		return name.String(), missing
	case !yes && !a.OnTerminal() && hub.IsName(arg):
		return "", fmt.Errorf("%s is not in the store; import it with --yes, or with `ingot create %s %s`", name, name, arg)
	case !yes && !a.OnTerminal():
		return "", missing
	}
	if err := ready(); err != nil {
		return "", err
	}
	if hub.IsName(arg) {
		return name.String(), importHub(ctx, a, name, arg, yes, missing)
	}
	if wanted, err := agree(ctx, a, yes, fmt.Sprintf("%s is not in the store; pull it?", name)); err != nil || !wanted {
		return "", errors.Join(err, missing)
	}
	return name.String(), PullModel(ctx, a, name)
}

func agree(ctx context.Context, a *cli.App, yes bool, question string) (bool, error) {
	if yes {
		return true, nil
	}
	return a.Confirm(ctx, question)
}

// importHub imports a repository of a hub under its own name.
func importHub(ctx context.Context, a *cli.App, name manifest.Name, arg string, yes bool, missing error) error {
	n, err := hub.ParseName(arg)
	if err != nil {
		return err
	}
	client, err := transfer.HubClient(a, transfer.HubFlags{}, transfer.MinAhead)
	if err != nil {
		return err
	}
	folder, err := client.Open(ctx, n)
	if err != nil {
		return err
	}
	bytes, err := source.WeightBytes(folder)
	_ = folder.Close()
	if err != nil {
		return err
	}
	wanted, err := agree(ctx, a, yes, fmt.Sprintf("%s is not in the store; import it (%s)?", n, cli.Size(bytes)))
	if err != nil {
		return err
	}
	if !wanted {
		return missing
	}
	from := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: arg}}}
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	options := convert.Options{Version: cli.Version, Memory: write.DefaultMemory}
	options.Remote = transfer.Hub(a, transfer.HubFlags{}, options.Memory)
	_, err = Convert(ctx, a, st, name, from, options, false)
	return err
}
