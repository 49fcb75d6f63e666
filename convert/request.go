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
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
)

// request is the parsed content of a Modelfile.
type request struct {
	from     modelfile.Command
	draft    *modelfile.Command
	adapters []modelfile.Command
	plan     PlanOptions
	warnings []string
}

// single are the commands that a Modelfile may contain only once. A repeated one is an error, because the author would
// expect both lines to have an effect.
var single = []string{
	modelfile.From, modelfile.Draft, modelfile.Template, modelfile.System,
	modelfile.Parser, modelfile.Renderer, modelfile.Requires,
}

// parseRequest reads a Modelfile's commands, and rejects unsupported ones. version is the program's.
func parseRequest(ctx context.Context, file *modelfile.File, version string) (request, error) {
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
				known := strings.Join(parse.Names(), ", ")
				warning := file.Errorf(c, "this version does not know the parser (known: %s)", known)
				req.warnings = append(req.warnings, warning.Error())
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

// opener opens the models named by FROM and DRAFT: a folder, or else a model in the store.
type opener struct {
	store func() (*store.Store, error)
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
		return nil, o.located(c, err)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return Open(path)
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
func (o opener) image(ctx context.Context, c modelfile.Command) (*Inventory, error) {
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
	return OpenImage(ctx, st, entry)
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
	case ext == ".gguf":
		return fmt.Errorf("%s: %w, and GGUF files are not supported; name a folder with config.json and *.safetensors",
			path, errPath)
	case ext == ".bin" || ext == ".pt" || ext == ".pth" || ext == ".ckpt":
		return fmt.Errorf("%s: %w, and a PyTorch pickle runs code when it is read; "+
			"name a folder with config.json and *.safetensors", path, errPath)
	}
	return fmt.Errorf("%s: %w; name one with config.json and *.safetensors", path, errPath)
}
