package create

import (
	"context"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/image"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/safetensors"
)

// remotes are several places that sources come from. The first that names a value opens it.
type remotes []convert.Remote

// Names implements [convert.Remote].
func (r remotes) Names(value string) bool {
	return slices.ContainsFunc(r, func(one convert.Remote) bool { return one.Names(value) })
}

// Open implements [convert.Remote].
func (r remotes) Open(ctx context.Context, value string) (safetensors.Folder, error) {
	for _, one := range r {
		if one.Names(value) {
			return one.Open(ctx, value)
		}
	}
	return nil, fmt.Errorf("%s: %w", value, manifest.ErrNotFound)
}

// pullSources pulls the images that FROM and DRAFT name in a registry, if the store lacks them. It returns the
// Modelfile with the commands of the images; those of the file override them. done is called when the model is made.
func pullSources(ctx context.Context, a *cli.App, from *modelfile.File, options *convert.Options, o createOptions) (
	file *modelfile.File, done func(), err error) {
	file, done = from, func() {}
	for _, c := range from.Commands {
		if c.Name != modelfile.From && c.Name != modelfile.Draft {
			continue
		}
		name, ok, err := isMissingImage(ctx, a, options.Dir, c.Value)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		st, r, err := fetchSource(ctx, a, name, o)
		if err != nil {
			return nil, nil, err
		}
		if r.Files == nil {
			a.Note("note: pulled %s", r.Name)
			continue
		}
		i := image.Stored(st, name, r.Files)
		i.Name = c.Value
		options.Remote = append(remotes{i}, options.Remote)
		before := done
		done = func() { before(); r.Done() }
		if c.Name == modelfile.From {
			if file, err = withImage(a, file, i); err != nil {
				return nil, nil, err
			}
		}
	}
	return file, done, nil
}

// isMissingImage reports whether a source is the name of an image in a registry, and of nothing that is here.
func isMissingImage(ctx context.Context, a *cli.App, dir, value string) (name manifest.Name, missing bool, err error) {
	name, err = manifest.ParseName(value)
	if err != nil || name.IsLocal() || hub.IsName(value) {
		return name, false, nil //nolint:nilerr // a path, whose errors are others'
	}
	if path, err := modelfile.Resolve(dir, value); err != nil {
		return name, false, nil //nolint:nilerr // as above
	} else if _, err := safetensors.Stat(path); err == nil {
		return name, false, nil
	}
	stored, err := models.Has(ctx, a, name)
	return name, !stored, err
}

// fetchSource pulls an image that a model is made of.
func fetchSource(
	ctx context.Context, a *cli.App, name manifest.Name, o createOptions,
) (*store.Store, *registry.PullResult, error) {
	progress := transfer.NewProgress(a, "pull", o.json)
	defer progress.End()
	if !o.push { // else --creds is for the registry that is pushed to
		o.transfer.Credentials.Names = []string{name.String()}
	}
	client, err := transfer.NewClient(a, &o.transfer, progress.Set)
	if err != nil {
		return nil, nil, err
	}
	st, err := a.OpenStore()
	if err != nil {
		return nil, nil, err
	}
	r, err := client.Pull(ctx, st, name, registry.PullOptions{Files: true, Model: true})
	return st, r, err
}

// withImage adds the commands of an image to a Modelfile that has its own.
func withImage(a *cli.App, file *modelfile.File, i *image.Image) (*modelfile.File, error) {
	of, left, err := i.Modelfile()
	if err != nil {
		return nil, err
	}
	for _, w := range left {
		a.Note("note: %s", w)
	}
	out := *file
	out.Commands = slices.Clone(file.Commands)
	for _, c := range of.Commands[1:] { // the first is FROM
		own := slices.ContainsFunc(file.Commands, func(f modelfile.Command) bool {
			return f.Name == c.Name && (c.Name != modelfile.Parameter || f.Key == c.Key)
		})
		if !own || c.Name == modelfile.License {
			out.Commands = append(out.Commands, c)
		}
	}
	return &out, nil
}
