package cmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/image"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/ollama/exchange"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// importImage makes a model of an image that holds a model's files.
func (a *app) importImage(ctx context.Context, name manifest.Name, i *image.Image, json bool) (convert.Result, error) {
	from, left, err := i.Modelfile()
	if err != nil {
		return convert.Result{}, err
	}
	st, err := a.openStore()
	if err != nil {
		return convert.Result{}, err
	}
	options := convert.Options{Version: Version, Memory: write.DefaultMemory, Remote: i}
	result, err := a.convert(ctx, st, name, from, options, json)
	if err != nil {
		return convert.Result{}, err
	}
	for _, w := range left {
		a.note("note: %s", w)
	}
	return result, nil
}

// convertPulled makes a model of files that were pulled, and sets the result's digest to the model's.
func (a *app) convertPulled(ctx context.Context, st *store.Store, r *registry.PullResult, json bool) error {
	result, err := a.importImage(ctx, r.Name, image.Stored(st, r.Name, r.Files), json)
	if err != nil {
		return err
	}
	r.Done()
	a.note("note: %s is made of the files of %s (%s), which `ingot prune` removes", r.Name, r.Files.Describe(),
		size(bytesOf(r.Files)))
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

// copyGGUF makes a model of a GGUF file in Ollama's store. The digest is "" if the model has none.
func (a *app) copyGGUF(
	ctx context.Context, from ollama.Name, st *store.Store, to manifest.Name, format string, json bool,
) (digest.Digest, error) {
	other, err := exchange.Open("")
	if err != nil {
		return "", err
	}
	files, err := other.Files(from)
	if files == nil || err != nil {
		return "", err
	}
	for _, l := range files.ForModel() {
		if l.Role != foreign.Weights {
			continue // texts are verified when they are read
		}
		if err := other.Verify(ctx, l.Descriptor); err != nil {
			return "", err
		}
	}
	i := image.Stored(st, to, files)
	i.Name, i.Blob, i.Read = from.String(), other.OpenBlob, other.ReadBlob
	result, err := a.importImage(ctx, to, i, json)
	if err != nil || format == "" {
		return result.Digest, err
	}
	return st.Copy(ctx, to, to, format)
}

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
func (a *app) pullSources(ctx context.Context, from *modelfile.File, options *convert.Options, o createOptions) (
	file *modelfile.File, done func(), err error) {
	file, done = from, func() {}
	for _, c := range from.Commands {
		if c.Name != modelfile.From && c.Name != modelfile.Draft {
			continue
		}
		name, ok, err := a.isMissingImage(ctx, options.Dir, c.Value)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		st, r, err := a.fetchSource(ctx, name, o)
		if err != nil {
			return nil, nil, err
		}
		if r.Files == nil {
			a.note("note: pulled %s", r.Name)
			continue
		}
		i := image.Stored(st, name, r.Files)
		i.Name = c.Value
		options.Remote = append(remotes{i}, options.Remote)
		before := done
		done = func() { before(); r.Done() }
		if c.Name == modelfile.From {
			if file, err = a.withImage(file, i); err != nil {
				return nil, nil, err
			}
		}
	}
	return file, done, nil
}

// isMissingImage reports whether a source is the name of an image in a registry, and of nothing that is here.
func (a *app) isMissingImage(ctx context.Context, dir, value string) (name manifest.Name, missing bool, err error) {
	name, err = manifest.ParseName(value)
	if err != nil || name.IsLocal() || hub.IsName(value) {
		return name, false, nil //nolint:nilerr // a path, whose errors are others'
	}
	if path, err := modelfile.Resolve(dir, value); err != nil {
		return name, false, nil //nolint:nilerr // as above
	} else if _, err := safetensors.Stat(path); err == nil {
		return name, false, nil
	}
	stored, err := a.hasModel(ctx, name)
	return name, !stored, err
}

// fetchSource pulls an image that a model is made of.
func (a *app) fetchSource(ctx context.Context, name manifest.Name, o createOptions) (*store.Store, *registry.PullResult,
	error) {
	progress := a.transferProgress("pull", o.json)
	defer progress.end()
	if !o.push { // else --creds is for the registry that is pushed to
		o.transfer.credentials.names = []string{name.String()}
	}
	client, err := a.client(&o.transfer, progress.set)
	if err != nil {
		return nil, nil, err
	}
	st, err := a.openStore()
	if err != nil {
		return nil, nil, err
	}
	r, err := client.Pull(ctx, st, name, registry.PullOptions{Files: true, Model: true})
	return st, r, err
}

// withImage adds the commands of an image to a Modelfile that has its own.
func (a *app) withImage(file *modelfile.File, i *image.Image) (*modelfile.File, error) {
	of, left, err := i.Modelfile()
	if err != nil {
		return nil, err
	}
	for _, w := range left {
		a.note("note: %s", w)
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
