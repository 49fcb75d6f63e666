package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/opencontainers/go-digest"
)

// createRequest is the body of /api/create. What a model is made from are files that were sent before, or a model of the store, never a
// path.
type createRequest struct {
	Model      string                     `json:"model"`
	From       string                     `json:"from"`
	Files      map[string]string          `json:"files"` // digests by name
	Adapters   map[string]string          `json:"adapters"`
	Template   string                     `json:"template"`
	System     string                     `json:"system"`
	License    texts                      `json:"license"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Messages   []struct {
		Role    string            `json:"role"`
		Content string            `json:"content"`
		Images  []json.RawMessage `json:"images"`
	} `json:"messages"`
	Renderer string `json:"renderer"`
	Parser   string `json:"parser"`
	Requires string `json:"requires"`
	Quantize string `json:"quantize"`
	Stream   *bool  `json:"stream"`

	// Of older clients.
	Name         string `json:"name"`
	Quantization string `json:"quantization"`
	Modelfile    string `json:"modelfile"`
	Path         string `json:"path"`
}

// create is POST /api/create: a model is made.
func (s *Server) create(w http.ResponseWriter, r *http.Request) error {
	var q createRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	name, err := manifest.ParseName(cmp.Or(q.Model, q.Name))
	if err != nil {
		return err
	}
	commands, err := q.commands()
	if err != nil {
		return err
	}
	files, err := q.files()
	if err != nil {
		return err
	}
	opts := convert.Options{StoreOnly: true, Version: s.opts.Version}
	note := ""
	if kind := cmp.Or(q.Quantize, q.Quantization); kind != "" {
		if opts.Precision, note, err = convert.ToType(kind); err != nil {
			return err
		}
	}
	return s.follow(w, r, q.Stream, func(ctx context.Context, tell func(progressJSON)) error {
		if note != "" {
			tell(progressJSON{Status: "note: " + note})
		}
		return s.build(ctx, recipe{name, q.From, files, commands, opts}, tell)
	})
}

// commands are the lines of a Modelfile that the request stands for, but for FROM.
func (q createRequest) commands() ([]modelfile.Command, error) {
	switch {
	case q.Modelfile != "" || q.Path != "":
		return nil, badRequest("a Modelfile's text and paths are not taken: send from, or files that were uploaded, and the other fields")
	case len(q.Adapters) > 0:
		return nil, badRequest("adapters are not supported: merge the adapter into its checkpoint, for instance with merge_and_unload of the Python package peft, and send that")
	case q.From != "" && len(q.Files) > 0:
		return nil, badRequest("from and files exclude each other")
	case q.From == "" && len(q.Files) == 0:
		return nil, badRequest("there is neither from, a model of the store, nor files that were uploaded")
	}
	var list []modelfile.Command
	for _, c := range []struct{ name, value string }{
		{modelfile.Template, q.Template}, {modelfile.System, q.System},
		{modelfile.Renderer, q.Renderer}, {modelfile.Parser, q.Parser}, {modelfile.Requires, q.Requires},
	} {
		if c.value != "" {
			list = append(list, modelfile.Command{Name: c.name, Value: c.value})
		}
	}
	for _, text := range q.License {
		list = append(list, modelfile.Command{Name: modelfile.License, Value: text})
	}
	for _, name := range slices.Sorted(maps.Keys(q.Parameters)) {
		values, err := parameterTexts(q.Parameters[name])
		if err != nil {
			return nil, badRequest("parameter %q: %v", clip(name), err)
		}
		for _, v := range values {
			list = append(list, modelfile.Command{Name: modelfile.Parameter, Key: name, Value: v})
		}
	}
	for i, m := range q.Messages {
		if !slices.Contains([]string{"system", "user", "assistant"}, m.Role) {
			return nil, badRequest("message %d: its role is %q, not system, user or assistant", i+1, clip(m.Role))
		}
		if len(m.Images) > 0 {
			return nil, badRequest("message %d: a message of a model has no pictures", i+1)
		}
		list = append(list, modelfile.Command{Name: modelfile.Message, Key: m.Role, Value: m.Content})
	}
	return list, nil
}

// parameterTexts writes a parameter's values as PARAMETER lines have them; null is none.
func parameterTexts(value json.RawMessage) ([]string, error) {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []string{v}, nil
	case []any:
		var list []json.RawMessage
		var out []string
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, err
		}
		for i := range list {
			if _, nested := v[i].([]any); nested {
				return nil, errors.New("it is a list of lists")
			}
			more, err := parameterTexts(list[i])
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	case map[string]any:
		return nil, errors.New("it is an object")
	}
	return []string{string(value)}, nil // a number or a truth value, as it is written
}

// recipe is what a model is made of: a model of the store, or files.
type recipe struct {
	name     manifest.Name
	from     string
	files    map[string]digest.Digest
	commands []modelfile.Command
	opts     convert.Options
}

// statusWaiting is for who waits until another request is through.
const statusWaiting = "waiting for another create"

// build makes a model. One is made at a time: each takes a gigabyte of buffers and all processors.
func (s *Server) build(ctx context.Context, q recipe, tell func(progressJSON)) error {
	select {
	case s.creating <- struct{}{}:
	default:
		tell(progressJSON{Status: statusWaiting})
		select {
		case s.creating <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-s.creating }()
	store, dir := s.opts.Store, ""
	release, err := store.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if len(q.files) > 0 {
		var remove func()
		if dir, remove, err = store.Folder(q.files); errors.Is(err, manifest.ErrBlobMissing) {
			return badRequest("%v; POST %sDIGEST sends a file", err, blobPath)
		}
		if err != nil {
			return err
		}
		defer remove()
		if err := checkFolder(dir); err != nil {
			return err
		}
		q.from, q.opts.StoreOnly = dir, false
	}
	begun := false
	q.opts.Progress = func(e convert.Event) {
		begun = true
		tell(progressJSON{Status: "converting model", Total: e.TotalBytes, Completed: e.Bytes})
	}
	file := &modelfile.File{Commands: append([]modelfile.Command{{Name: modelfile.From, Value: q.from}}, q.commands...)}
	result, err := convert.Create(ctx, store, q.name, file, q.opts)
	if err != nil {
		return createError(err, dir)
	}
	store.UsedUploads(slices.Collect(maps.Values(q.files))...)
	if !begun {
		tell(progressJSON{Status: "using the weights that are there"})
	}
	for _, w := range result.Warnings {
		tell(progressJSON{Status: "note: " + oneLine(inFiles(w, dir))})
	}
	tell(progressJSON{Status: "writing manifest"})
	return nil
}

// createError is one of who asks, unless the system is to blame, and names no folder of this machine.
func createError(err error, dir string) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	t := tell(err)
	var system syscall.Errno
	if t.status == http.StatusInternalServerError && !errors.As(err, &system) {
		t.status = http.StatusBadRequest
	}
	return failf(t.status, "%s", inFiles(t.message, dir))
}

// inFiles takes the folder of the files out of a message.
func inFiles(message, dir string) string {
	if dir == "" {
		return message
	}
	return strings.ReplaceAll(strings.ReplaceAll(message, dir+string(filepath.Separator), ""), dir, "the files")
}
