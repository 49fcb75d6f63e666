package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/convert/image"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/server/wire"
	"github.com/opencontainers/go-digest"
)

// createRequest is the body of /api/create. The model is created from uploaded files or from a model of the store,
// never from a path.
type createRequest struct {
	Model      string                     `json:"model"`
	From       string                     `json:"from"`
	Files      map[string]string          `json:"files"`       // digests by name
	Adapters   map[string]string          `json:"adapters"`    // of an adapter, which is merged
	DraftFiles map[string]string          `json:"draft_files"` // of a draft model
	Template   string                     `json:"template"`
	System     string                     `json:"system"`
	License    parameters.Texts           `json:"license"`
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

	DraftQuantize string `json:"draft_quantize"`
	RemoteHost    string `json:"remote_host"` // refused: models run on this server

	// Fields of older clients.
	Name         string `json:"name"`
	Quantization string `json:"quantization"`
	Modelfile    string `json:"modelfile"`
	Path         string `json:"path"`
}

// create is POST /api/create: it creates a model.
func (s *api) create(w http.ResponseWriter, r *http.Request) error {
	var q createRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	name, err := s.name(q.Model, q.Name)
	if err != nil {
		return err
	}
	commands, err := q.commands()
	if err != nil {
		return err
	}
	input := buildInput{name: name, from: s.existing(q.From), commands: commands}
	for _, set := range []struct {
		field string
		files map[string]string
		to    *map[string]digest.Digest
	}{{"files", q.Files, &input.files}, {"adapters", q.Adapters, &input.adapter}, {"draft_files", q.DraftFiles,
		&input.draft}} {
		if *set.to, err = uploaded(set.field, set.files); err != nil {
			return err
		}
	}
	precision, notes, err := q.precision()
	if err != nil {
		return err
	}
	input.opts = convert.Options{StoreOnly: true, Version: s.opts.Version, Precision: precision}
	how := progressStream{q.Stream, "gathering model components", s.core.Silence()}
	return streamProgress(w, r, how, func(ctx context.Context, report reporter) error {
		for _, n := range notes {
			report(progressJSON{Status: "note: " + n})
		}
		return s.build(ctx, input, report)
	})
}

// precision returns the types of the weights and of the draft's weights, and notes about aliases.
func (q createRequest) precision() (p recipe.Precision, notes []string, err error) {
	for i, kind := range []string{cmp.Or(q.Quantize, q.Quantization), q.DraftQuantize} {
		if kind == "" {
			continue
		}
		one, note, err := recipe.ToType(kind)
		if err != nil {
			return p, nil, err
		}
		if i == 0 {
			p = one
		} else {
			p.Draft = one.Type
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return p, notes, nil
}

// commands returns the Modelfile lines that the request stands for, except FROM.
func (q createRequest) commands() ([]modelfile.Command, error) {
	switch {
	case q.Modelfile != "" || q.Path != "":
		return nil, wire.BadRequest("modelfile and path are not supported: send from or uploaded files, and the other fields")
	case q.RemoteHost != "":
		return nil, wire.BadRequest("remote_host is not supported: models run on this server")
	case q.From != "" && len(q.Files) > 0:
		return nil, wire.BadRequest("from and files are mutually exclusive")
	case q.From == "" && len(q.Files) == 0:
		return nil, wire.BadRequest("neither 'from' or 'files' was specified: send a model of the store, or uploaded files")
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
			return nil, wire.BadRequest("parameters.%s: %v", wire.Clip(name), err)
		}
		for _, v := range values {
			list = append(list, modelfile.Command{Name: modelfile.Parameter, Key: name, Value: v})
		}
	}
	for i, m := range q.Messages {
		if !slices.Contains([]string{"system", "user", "assistant"}, m.Role) {
			return nil, wire.BadRequest("messages[%d].role is %q: must be system, user or assistant", i, wire.Clip(m.Role))
		}
		if len(m.Images) > 0 {
			return nil, wire.BadRequest("messages[%d].images: messages of a model cannot have pictures", i)
		}
		list = append(list, modelfile.Command{Name: modelfile.Message, Key: m.Role, Value: m.Content})
	}
	return list, nil
}

// parameterTexts formats a parameter's values like PARAMETER lines. null gives none.
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
				return nil, errors.New("must not be a list of lists")
			}
			more, err := parameterTexts(list[i])
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	case map[string]any:
		return nil, errors.New("must not be an object")
	}
	if whole, ok := jsonfit.Whole(string(value)); ok {
		return []string{whole}, nil
	}
	return []string{string(value)}, nil // a number or boolean, verbatim
}

// buildInput is the input of a build: a model of the store or uploaded files, and changes to it.
type buildInput struct {
	name     manifest.Name
	from     string
	files    map[string]digest.Digest // instead of from
	adapter  map[string]digest.Digest
	draft    map[string]digest.Digest
	commands []modelfile.Command
	opts     convert.Options
}

// statusWaiting is reported while a build waits for another one.
const statusWaiting = "waiting for another create"

// build creates a model from a request.
func (s *api) build(ctx context.Context, q buildInput, report reporter) error {
	done, err := s.takeBuild(ctx, report)
	if err != nil {
		return err
	}
	defer done()
	dirs, err := s.folders(q)
	defer removeAll(dirs)
	if err != nil {
		return err
	}
	file := &modelfile.File{Commands: append([]modelfile.Command{{Name: modelfile.From, Value: q.from}}, q.commands...)}
	for _, d := range dirs {
		if d.command == modelfile.From {
			file.Commands[0].Value = d.path
		} else {
			file.Commands = append(file.Commands, modelfile.Command{Name: d.command, Value: d.path})
		}
	}
	q.opts.Remote = convert.Folders(paths(dirs))
	if err := s.convert(ctx, q.name, file, q.opts, dirs, report); err != nil {
		return createError(missing(err, notFound, q.from), dirs)
	}
	for _, d := range dirs {
		ingest.UsedUploads(s.opts.Store, slices.Collect(maps.Values(d.files))...)
	}
	report(progressJSON{Status: "writing manifest"})
	return nil
}

// convertPulled makes a model of files that were pulled.
func (s *api) convertPulled(ctx context.Context, r *registry.PullResult, report reporter) error {
	done, err := s.takeBuild(ctx, report)
	if err != nil {
		return err
	}
	defer done()
	from := image.Stored(s.opts.Store, r.Name, r.Files)
	file, left, err := from.Modelfile()
	if err != nil {
		return createError(err, nil)
	}
	opts := convert.Options{Version: s.opts.Version, Remote: from}
	if err := s.convert(ctx, r.Name, file, opts, nil, report); err != nil {
		return createError(err, nil)
	}
	for _, w := range left {
		report(progressJSON{Status: "note: " + wire.Line(w)})
	}
	return nil
}

// takeBuild waits until no other build runs, since each takes a gigabyte of buffers and all CPU cores, and locks the
// store.
func (s *api) takeBuild(ctx context.Context, report reporter) (done func(), err error) {
	select {
	case s.buildSlot <- struct{}{}:
	default:
		report(progressJSON{Status: statusWaiting})
		select {
		case s.buildSlot <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	release, err := s.opts.Store.Lock(ctx)
	if err != nil {
		<-s.buildSlot
		return nil, err
	}
	return func() {
		release()
		debug.FreeOSMemory() // headers and tokenizers take hundreds of megabytes, which the server does not need again
		<-s.buildSlot
	}, nil
}

// convert executes a Modelfile. dirs are the folders with the request's files, which messages do not name.
func (s *api) convert(ctx context.Context, name manifest.Name, file *modelfile.File, opts convert.Options,
	dirs []uploadFolder, report reporter) error {
	begun := false
	opts.Progress = func(e write.Event) {
		begun = true
		report(progressJSON{Status: "converting model", Total: e.TotalBytes, Completed: e.Bytes})
	}
	result, err := convert.Create(ctx, s.opts.Store, name, file, opts)
	if err != nil {
		return err
	}
	if !begun {
		report(progressJSON{Status: "using existing weights"})
	}
	for _, w := range result.Warnings {
		report(progressJSON{Status: "note: " + wire.Line(withoutFolders(w, dirs))})
	}
	return nil
}

// createError makes an error the client's fault unless the operating system caused it. Its message names no folder of
// this machine.
func createError(err error, dirs []uploadFolder) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	t := wire.ErrorOf(err)
	var system syscall.Errno
	if t.Status == http.StatusInternalServerError && !errors.As(err, &system) {
		t.Status = http.StatusBadRequest
	}
	return wire.Errorf(t.Status, "%s", withoutFolders(t.Message, dirs))
}
