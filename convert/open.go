package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
)

// opener opens the models named by FROM and DRAFT: a folder, or else a model in the store.
type opener struct {
	store func() (*store.Store, error)
	file  *modelfile.File
	dir   string

	storeOnly bool
	options   source.Options
}

func (o opener) open(ctx context.Context, c modelfile.Command) (*source.Source, error) {
	if o.storeOnly {
		return o.image(ctx, c)
	}
	path, err := modelfile.Resolve(o.dir, c.Value)
	if err != nil {
		return nil, o.located(c, err)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return source.Open(path, o.options)
	case err == nil && source.IsGGUF(path):
		return source.OpenFile(path, o.options)
	case err == nil:
		return nil, o.located(c, o.notAFolder(c, path))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, o.located(c, err)
	case strings.HasPrefix(c.Value, ".") || strings.HasPrefix(c.Value, "~") || filepath.IsAbs(c.Value):
		if c.Line == 0 {
			return nil, err
		}
		return nil, o.located(c, errors.New("there is no such folder"))
	}
	return o.image(ctx, c)
}

// image opens a model in the store.
func (o opener) image(ctx context.Context, c modelfile.Command) (*source.Source, error) {
	name, err := manifest.ParseName(c.Value)
	if err != nil && o.storeOnly {
		return nil, err
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
	return source.OpenImage(ctx, st, entry)
}

// located prefixes an error with the command's position in the Modelfile, or with the command's value if the command
// does not come from a file.
func (o opener) located(c modelfile.Command, err error) error {
	if c.Line > 0 {
		return o.file.Errorf(c, "%v", err)
	}
	if errors.Is(err, errPath) {
		return err
	}
	return fmt.Errorf("%s: %w", c.Value, err)
}

// errPath marks an error that already names the path.
var errPath = errors.New("not a folder")

func (o opener) notAFolder(c modelfile.Command, path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".bin" || ext == ".pt" || ext == ".pth" || ext == ".ckpt":
		return fmt.Errorf("%s: %w, and a PyTorch pickle runs code when it is read; "+
			"name a folder with config.json and *.safetensors", path, errPath)
	}
	return fmt.Errorf("%s: %w; name one with config.json and *.safetensors", path, errPath)
}

// mergeAdapters opens the adapters of the ADAPTER lines and merges them into the base model's tensors, in order.
func (p *prepared) mergeAdapters(req *request, o opener) error {
	for _, c := range req.adapters {
		if o.storeOnly {
			return fmt.Errorf("an adapter is a local folder; create the model from a Modelfile on the server's machine")
		}
		path, err := modelfile.Resolve(o.dir, c.Value)
		if err != nil {
			return o.located(c, err)
		}
		if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return o.located(c, errors.New("there is no such folder"))
		} else if err != nil {
			return o.located(c, err)
		} else if !info.IsDir() {
			return o.located(c, fmt.Errorf("%s is not a folder; name the one with %s and %s",
				path, adapter.ConfigName, adapter.WeightsName))
		}
		a, err := adapter.Open(path)
		if err != nil {
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
