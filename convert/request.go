package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
)

// request is what a Modelfile asks for.
type request struct {
	from     modelfile.Command
	draft    *modelfile.Command
	adapters []modelfile.Command
	plan     PlanOptions
	warnings []string
}

// single are the commands that a Modelfile may have once: a line without effect would make another image than its author
// expects.
var single = []string{modelfile.From, modelfile.Draft, modelfile.Template, modelfile.System, modelfile.Parser, modelfile.Renderer, modelfile.Requires}

// read takes from a Modelfile what it asks for, and refuses what cannot be done. Version is that of the program.
func read(ctx context.Context, file *modelfile.File, version string) (request, error) {
	var req request
	once := map[string]bool{}
	for _, c := range file.Commands {
		if slices.Contains(single, c.Name) && once[c.Name] {
			return req, file.Errorf(c, "a second %s is not supported", c.Name)
		}
		once[c.Name] = true
		switch c.Name {
		case modelfile.From:
			req.from = c
		case modelfile.Draft:
			req.draft = &c
		case modelfile.Parser:
			req.plan.Parser = c.Value
			if !parse.Known(c.Value) {
				req.warnings = append(req.warnings, file.Errorf(c, "this version knows no such parser (known: %s)", strings.Join(parse.Names(), ", ")).Error())
			}
		case modelfile.Renderer:
			req.plan.Renderer = c.Value
		case modelfile.License:
			req.plan.Licenses = append(req.plan.Licenses, c.Value)
		case modelfile.Template:
			if _, err := chat.Parse(ctx, c.Value); err != nil {
				return req, file.Errorf(c, "%v", err)
			}
			req.plan.Template = &c.Value
		case modelfile.System:
			req.plan.System = &c.Value
		case modelfile.Message:
			req.plan.Messages = append(req.plan.Messages, Message{Role: c.Key, Content: c.Value})
		case modelfile.Requires:
			req.plan.Requires = c.Value
			warning, err := checkVersion(file, c, version)
			if err != nil {
				return req, err
			}
			req.warnings = append(req.warnings, warning...)
		case modelfile.Adapter:
			req.adapters = append(req.adapters, c)
		case modelfile.Parameter: // below
		default:
			return req, file.Errorf(c, "%s is not supported by this version; remove the line", c.Name)
		}
	}
	if !once[modelfile.From] {
		return req, &modelfile.Error{File: file.Name, Msg: "no FROM line"}
	}
	params, warnings, err := file.Params()
	req.plan.Parameters, req.warnings = params, append(warnings, req.warnings...)
	return req, err
}

// opener finds what FROM and DRAFT name: a folder, else a model of the store.
type opener struct {
	store func() (*manifest.Store, error)
	file  *modelfile.File
	dir   string

	storeOnly bool
}

func (o opener) open(ctx context.Context, c modelfile.Command) (*Inventory, error) {
	if o.storeOnly {
		return o.image(ctx, c)
	}
	path, err := modelfile.Resolve(o.dir, c.Value)
	if err != nil {
		return nil, o.wrong(c, err)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return Open(path)
	case err == nil:
		return nil, o.wrong(c, o.notAFolder(c, path))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, o.wrong(c, err)
	case strings.HasPrefix(c.Value, ".") || strings.HasPrefix(c.Value, "~") || filepath.IsAbs(c.Value):
		if c.Line == 0 {
			return nil, err
		}
		return nil, o.wrong(c, errors.New("there is no such folder"))
	}
	return o.image(ctx, c)
}

// image opens a model of the store.
func (o opener) image(ctx context.Context, c modelfile.Command) (*Inventory, error) {
	name, err := manifest.ParseName(c.Value)
	if err != nil && o.storeOnly {
		return nil, err
	}
	if err != nil {
		return nil, o.wrong(c, fmt.Errorf("there is no such folder, and it is no name of a model: %w", err))
	}
	store, err := o.store()
	var entry *manifest.Entry
	if err == nil {
		entry, err = store.Resolve(ctx, name)
	}
	if err != nil && o.storeOnly {
		return nil, err
	}
	if errors.Is(err, manifest.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return nil, o.wrong(c, fmt.Errorf("there is no such folder, and no model %s in the store; pull it first", name))
	}
	if err != nil {
		return nil, o.wrong(c, err)
	}
	if err := store.CheckPresent(entry, true); err != nil {
		return nil, err
	}
	return OpenImage(ctx, store, entry)
}

// wrong puts the place in the Modelfile in front of an error. A command that was not parsed stands for what the user named.
func (o opener) wrong(c modelfile.Command, err error) error {
	if c.Line > 0 {
		return o.file.Errorf(c, "%v", err)
	}
	if errors.Is(err, errPath) {
		return err
	}
	return fmt.Errorf("%s: %w", c.Value, err)
}

// errPath marks an error that names the path already.
var errPath = errors.New("not a folder")

func (o opener) notAFolder(c modelfile.Command, path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".gguf":
		return fmt.Errorf("%s: %w, and GGUF files are not imported; name a folder with config.json and *.safetensors", path, errPath)
	case ext == ".bin" || ext == ".pt" || ext == ".pth" || ext == ".ckpt":
		return fmt.Errorf("%s: %w, and PyTorch pickles run code when they are read; name a folder with config.json and *.safetensors", path, errPath)
	}
	return fmt.Errorf("%s: %w; name one with config.json and *.safetensors", path, errPath)
}
