package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/safetensors"
)

// opener opens the models named by FROM and DRAFT: a folder, or else a model in the store.
type opener struct {
	store func() (*store.Store, error)
	file  *modelfile.File
	dir   string

	storeOnly bool
	options   source.Options
	remote    Remote
}

func (o opener) open(ctx context.Context, c modelfile.Command) (*source.Source, error) {
	if o.isRemote(c) {
		folder, err := o.remote.Open(ctx, c.Value)
		if err != nil {
			return nil, o.locatedRemote(c, err)
		}
		src, err := source.OpenFolder(folder, o.options) // which closes it
		if err != nil {
			return nil, o.locatedRemote(c, err)
		}
		return src, nil
	}
	if o.storeOnly {
		return o.image(ctx, c)
	}
	path, err := modelfile.Resolve(o.dir, c.Value)
	if err != nil {
		return nil, o.located(c, err)
	}
	info, err := safetensors.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return source.Open(path, o.options)
	case err == nil:
		found, err := kindOf(path)
		if err != nil || found.Kind != filekind.GGUF {
			return nil, o.located(c, notAModel(path, found, err))
		}
		folder, name := safetensors.LocalFile(path, o.options.AnyLinks)
		return source.OpenFile(folder, name, o.options)
	case errors.Is(err, safetensors.ErrIncomplete):
		return nil, o.located(c, pathError{err})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, o.located(c, err)
	case strings.HasPrefix(c.Value, ".") || strings.HasPrefix(c.Value, "~") || filepath.IsAbs(c.Value):
		return nil, o.located(c, errors.New("there is no such folder or GGUF file"))
	}
	return o.image(ctx, c)
}

// isRemote reports whether a command names a folder that is not on this machine.
func (o opener) isRemote(c modelfile.Command) bool { return o.remote != nil && o.remote.Names(c.Value) }

// locatedRemote is located for errors that name the value already.
func (o opener) locatedRemote(c modelfile.Command, err error) error {
	if c.Line > 0 {
		return o.file.Errorf(c, "%v", err)
	}
	return err
}

// closeFolder closes a folder that has to be closed.
func closeFolder(folder safetensors.Folder) {
	if c, ok := folder.(io.Closer); ok {
		_ = c.Close()
	}
}

// image opens a model in the store.
func (o opener) image(ctx context.Context, c modelfile.Command) (*source.Source, error) {
	name, err := manifest.ParseName(c.Value)
	if err != nil && o.storeOnly {
		return nil, err
	}
	if err != nil && strings.Contains(c.Value, "://") {
		return nil, o.located(c, errors.New("it is the address of no hub that ingot knows; a repository is "+
			"hf.co/ORG/REPO, and HF_ENDPOINT is for the address of a mirror"))
	}
	if err != nil {
		return nil, o.located(c, fmt.Errorf("there is no such folder, and it is not a valid model name: %w", err))
	}
	st, err := o.store()
	var entry *store.Entry
	if err == nil {
		entry, err = st.Resolve(ctx, name)
	}
	if err != nil && o.storeOnly {
		return nil, err
	}
	if errors.Is(err, manifest.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return nil, o.located(c, fmt.Errorf("there is no such folder, and no model %s in the store; pull it first", name))
	}
	if err != nil {
		return nil, o.located(c, err)
	}
	if err := st.CheckPresent(entry, true); err != nil {
		return nil, err
	}
	return source.OpenImage(ctx, st, entry, o.options)
}

// located prefixes an error with the command's position in the Modelfile, or with the command's value if the command
// does not come from a file.
func (o opener) located(c modelfile.Command, err error) error {
	if c.Line > 0 {
		return o.file.Errorf(c, "%v", err)
	}
	if errors.As(err, new(pathError)) {
		return err
	}
	return fmt.Errorf("%s: %w", c.Value, err)
}

// mergeAdapters opens the adapters of the ADAPTER lines and merges them into the base model's tensors, in order.
func (p *prepared) mergeAdapters(ctx context.Context, req *request, o opener) error {
	for _, c := range req.adapters {
		if o.storeOnly && !o.isRemote(c) {
			return fmt.Errorf("an adapter is a local folder; create the model from a Modelfile on the server's machine")
		}
		folder, err := o.adapterFolder(ctx, c)
		if err != nil {
			return err
		}
		a, err := adapter.Open(folder)
		if err != nil {
			closeFolder(folder)
			return o.located(c, err)
		}
		p.adapters = append(p.adapters, a)
		merged, err := p.src.Merge(a)
		if err != nil {
			return o.located(c, err)
		}
		req.plan.Adapters = append(req.plan.Adapters, merged)
	}
	return nil
}

// adapterFolder returns the folder of an ADAPTER line.
func (o opener) adapterFolder(ctx context.Context, c modelfile.Command) (safetensors.Folder, error) {
	if o.isRemote(c) {
		folder, err := o.remote.Open(ctx, c.Value)
		if err != nil {
			return nil, o.locatedRemote(c, err)
		}
		if wanted := source.Wanted(folder); wanted != "" {
			closeFolder(folder)
			return nil, o.locatedRemote(c, fmt.Errorf("%s: an adapter is a repository; leave out :%s", c.Value, wanted))
		}
		return folder, nil
	}
	path, err := modelfile.Resolve(o.dir, c.Value)
	if err != nil {
		return nil, o.located(c, err)
	}
	info, err := safetensors.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, o.located(c, errors.New("there is no such folder"))
	case err != nil:
		return nil, o.located(c, err)
	case !info.IsDir():
		return nil, o.located(c, notAnAdapter(path))
	}
	return safetensors.Local(path, o.options.AnyLinks), nil
}
