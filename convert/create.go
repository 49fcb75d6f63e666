package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/opencontainers/go-digest"
)

// Options says how a Modelfile is carried out.
type Options struct {
	Dir      string      // the Modelfile's folder, from which relative paths start; "" = the current one
	Parallel int         // see WriteOptions
	Progress func(Event) // see WriteOptions
}

// Result is what Create made.
type Result struct {
	Name     manifest.Name
	Digest   digest.Digest // of the manifest
	Tensors  int
	Bytes    int64 // of all blobs
	Reused   int64 // of them, bytes that the store had already
	Warnings []string
}

// Create makes the image that a Modelfile describes and puts it under a name. When it fails, the store is as it was.
func Create(ctx context.Context, store *manifest.Store, name manifest.Name, file *modelfile.File, opts Options) (Result, error) {
	if name.Digest != "" {
		return Result{}, fmt.Errorf("create %s: a new model's name has no digest", name)
	}
	req, err := read(file, opts.Dir)
	if err != nil {
		return Result{}, err
	}
	inv, err := Open(req.from)
	if err != nil {
		return Result{}, err
	}
	defer inv.Close()
	plan, err := inv.Plan(ctx, req.plan)
	if err != nil {
		return Result{}, err
	}
	release, err := store.Lock(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	written, err := inv.Write(ctx, store, plan, WriteOptions{Parallel: opts.Parallel, Progress: opts.Progress})
	if err != nil {
		return Result{}, err
	}
	// All blobs have their names: too late to be cancelled.
	d, err := store.Put(context.WithoutCancel(ctx), name, written.Image)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Name: name, Digest: d, Tensors: len(plan.Tensors), Bytes: written.Image.Size(), Reused: written.Reused,
		Warnings: append(req.warnings, plan.Warnings...),
	}, nil
}

// request is what a Modelfile asks for.
type request struct {
	from     string // folder
	plan     PlanOptions
	warnings []string
}

// read takes from a Modelfile what this version acts on, and refuses the rest: a line without effect would make another
// image than its author expects.
func read(file *modelfile.File, dir string) (request, error) {
	var req request
	var err error
	for _, c := range file.Commands {
		switch c.Name {
		case modelfile.From:
			if req.from != "" {
				return req, file.Errorf(c, "a second FROM is not supported")
			}
			if req.from, err = folder(file, c, dir); err != nil {
				return req, err
			}
		case modelfile.License:
			req.plan.Licenses = append(req.plan.Licenses, c.Value)
		case modelfile.Parameter: // below
		default:
			return req, file.Errorf(c, "%s is not supported by this version; remove the line", c.Name)
		}
	}
	if req.from == "" {
		return req, &modelfile.Error{File: file.Name, Msg: "no FROM line"}
	}
	req.plan.Parameters, req.warnings, err = file.Params()
	return req, err
}

// folder finds the folder that FROM means. A command that was not parsed stands for a folder that the user named.
func folder(file *modelfile.File, c modelfile.Command, dir string) (string, error) {
	path, err := modelfile.Resolve(dir, c.Value)
	if c.Line == 0 && err == nil {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s: not a folder; name one with config.json and *.safetensors", path)
		}
		return path, err
	}
	if err != nil {
		return "", file.Errorf(c, "%v", err)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return path, nil
	case err == nil:
		return "", file.Errorf(c, "FROM names a file; this version imports folders with config.json and *.safetensors")
	case !errors.Is(err, fs.ErrNotExist):
		return "", file.Errorf(c, "%v", err)
	case strings.HasPrefix(c.Value, ".") || strings.HasPrefix(c.Value, "~") || filepath.IsAbs(c.Value):
		return "", file.Errorf(c, "there is no such folder")
	}
	return "", file.Errorf(c, "there is no such folder, and FROM with the name of an image is not supported by this version")
}
