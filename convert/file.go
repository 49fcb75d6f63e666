package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/safetensors"
)

// pathError is an error that already names the path.
type pathError struct{ err error }

func (e pathError) Error() string { return e.err.Error() }
func (e pathError) Unwrap() error { return e.err }

// kindOf returns what a local file is, from its first bytes.
func kindOf(path string) (filekind.Found, error) {
	return safetensors.KindOf(safetensors.LocalFile(path, false))
}

// notAModel says why a file is no source of a model.
func notAModel(path string, found filekind.Found, err error) error {
	const folder = "a folder with config.json and *.safetensors"
	switch {
	case err != nil:
		return pathError{err}
	case found.Stray():
		err = fmt.Errorf("%s: %w: %s", path, source.ErrSource, found.Wrong())
	case found.Kind == filekind.Safetensors:
		err = fmt.Errorf("%s: not a folder: a safetensors file has weights alone; "+
			"name its folder, which also needs config.json", path)
	case found.Kind == filekind.Pickle:
		err = fmt.Errorf("%s: not a folder, and a PyTorch pickle runs code when it is read; name %s", path, folder)
	case found.Kind == filekind.GGML:
		err = fmt.Errorf("%s: %w: it is %v; convert it again with a current llama.cpp", path, source.ErrSource, found)
	case found.Kind != filekind.Unknown:
		err = fmt.Errorf("%s: not a folder: it is %v; name %s, or a GGUF file", path, found, folder)
	default:
		err = fmt.Errorf("%s: not a folder; name one with config.json and *.safetensors, or a GGUF file", path)
	}
	return pathError{err}
}

// notAnAdapter says why a file is no adapter.
func notAnAdapter(path string) error {
	found, err := kindOf(path)
	want := fmt.Sprintf("name the folder with %s and %s", adapter.ConfigName, adapter.WeightsName)
	switch {
	case err != nil:
		return err
	case found.Stray():
		return fmt.Errorf("%s: %w: %s", path, source.ErrSource, found.Wrong())
	case found.Kind != filekind.GGUF:
		return fmt.Errorf("%s is not a folder; %s", path, want)
	}
	role, err := source.RoleOf(path)
	switch {
	case err != nil:
		return err
	case role == source.LoRA:
		return fmt.Errorf("%s is %s in GGUF, which cannot be merged; %s, as it was trained", path, role, want)
	case role != "":
		return fmt.Errorf("%s is %s, not an adapter; remove the line: the model reads text only", path, role)
	}
	return fmt.Errorf("%s is a GGUF model, not an adapter; %s", path, want)
}

// model returns the FROM line that names the model. Further ones may name projectors, which are left out, as they are
// of a folder and of a pulled model.
func (o opener) model(
	ctx context.Context, lines []modelfile.Command,
) (from modelfile.Command, left []source.LeftFile, err error) {
	var models []modelfile.Command
	for _, c := range lines {
		var projector *source.LeftFile
		if len(lines) > 1 {
			if projector, err = o.projector(ctx, c); err != nil {
				return from, nil, o.located(c, err)
			}
		}
		if projector == nil {
			models = append(models, c)
		} else {
			left = append(left, *projector)
		}
	}
	switch {
	case len(models) > 1:
		return from, nil, o.file.Errorf(models[1], "a second FROM is not supported, unless it names %s", source.Projector)
	case len(models) == 0:
		return from, nil, o.file.Errorf(lines[0], "all FROM lines name projectors; add one that names the model")
	}
	return models[0], left, nil
}

// projector returns the file of a FROM line that names a projector, or nil. A file in the place of which a download
// left something else is an error.
func (o opener) projector(ctx context.Context, c modelfile.Command) (*source.LeftFile, error) {
	leftOut := func(info fs.FileInfo, name string, err error) (*source.LeftFile, error) {
		if err != nil {
			return nil, err
		}
		why := fmt.Sprintf("it is %s; the model reads text only", source.Projector)
		return &source.LeftFile{Name: name, Why: why, Size: info.Size()}, nil
	}
	switch {
	case o.storeOnly:
		return nil, nil
	case o.isRemote(c):
		folder, err := o.remote.Open(ctx, c.Value)
		if err != nil {
			return nil, pathError{err}
		}
		defer closeFolder(folder)
		role, name, err := source.WantedRole(folder)
		if err != nil || role != source.Projector {
			return nil, err
		}
		info, err := folder.Stat(name)
		return leftOut(info, name, err)
	}
	path, err := modelfile.Resolve(o.dir, c.Value)
	if err != nil {
		return nil, nil
	}
	found, err := kindOf(path)
	switch {
	case errors.Is(err, safetensors.ErrIncomplete):
		return nil, pathError{err}
	case err != nil: // a folder, or the name of a model
		return nil, nil
	case found.Stray():
		return nil, notAModel(path, found, nil)
	case found.Kind != filekind.GGUF:
		return nil, nil
	}
	role, err := source.RoleOf(path)
	if err != nil {
		return nil, pathError{err}
	}
	if role != source.Projector {
		return nil, nil
	}
	info, err := os.Stat(path)
	return leftOut(info, filepath.Base(path), err)
}
