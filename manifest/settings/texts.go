package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/modelfile/parameters"
)

// Texts are the texts and settings in an image, beside its weights and its configuration.
type Texts struct {
	Record
	Templates  *chat.Templates // the TEMPLATE line's, else the checkpoint's, else the built-in one
	Template   string          // the default one; "" = none
	System     string
	Messages   []Message
	Licenses   []string
	Parameters map[string]any // by name; numbers are json.Number

	Own string // the TEMPLATE line's template; "" = none
}

// Read reads the texts of a model in the store. A model runs without a template too: where its templates cannot be
// read, those who need one get the error.
func Read(store *store.Store, entry *store.Entry) (*Texts, error) {
	t := &Texts{}
	for _, l := range entry.Image.Layers {
		if err := t.read(store, l); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", entry.Name, l.Name, err)
		}
	}
	files, err := t.templateFiles(store, entry.Image)
	switch {
	case errors.Is(err, manifest.ErrTooLarge):
		t.Templates = chat.Unreadable(fmt.Errorf("%s: %w", entry.Name, err))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", entry.Name, err)
	default:
		t.Templates = chat.ReadTemplates(files, t.Parser)
	}
	if n, err := t.Templates.Get(""); err == nil {
		t.Template = n.Text
	}
	return t, nil
}

// templateFiles returns the files that hold chat templates, or only the TEMPLATE line's.
func (t *Texts) templateFiles(store *store.Store, img manifest.Image) (files []chat.File, err error) {
	if t.Own != "" {
		return []chat.File{{Name: chat.TemplateFile, Data: []byte(t.Own)}}, nil
	}
	for _, l := range img.Layers {
		if l.Kind != manifest.KindFile || !chat.HoldsTemplate(l.Name) {
			continue
		}
		data, err := store.ReadBlob(l.Digest, limits.TemplateFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		files = append(files, chat.File{Name: l.Name, Data: data})
	}
	return files, nil
}

func (t *Texts) read(store *store.Store, l manifest.Layer) error {
	record := l.Kind == manifest.KindFile && l.Name == RecordName
	switch {
	case record:
	case l.Kind == manifest.KindTemplate, l.Kind == manifest.KindSystem, l.Kind == manifest.KindLicense,
		l.Kind == manifest.KindParams, l.Kind == manifest.KindMessages:
	default:
		return nil
	}
	data, err := store.ReadBlob(l.Digest, MaxFile)
	if err != nil {
		return err
	}
	switch {
	case record:
		return pyjson.Unmarshal(data, &t.Record)
	case l.Kind == manifest.KindTemplate:
		t.Own = string(data)
	case l.Kind == manifest.KindSystem:
		t.System = string(data)
	case l.Kind == manifest.KindLicense:
		t.Licenses = append(t.Licenses, string(data))
	case l.Kind == manifest.KindMessages:
		return pyjson.Unmarshal(data, &t.Messages)
	case l.Kind == manifest.KindParams:
		t.Parameters, err = DecodeParameters(data)
	}
	return err
}

// Modelfile returns a Modelfile that creates the same image again, with a line for each setting, so that users can edit
// them. FROM names the image itself and provides weights, draft and files. Notes name the settings that no line can
// express; FROM provides those too.
func (t *Texts) Modelfile(from string) (file *modelfile.File, notes []string) {
	file = &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: from}}}
	add := func(name, key, value string) {
		c := modelfile.Command{Name: name, Key: key, Value: value}
		if !expressible(c) {
			if key != "" {
				name += fmt.Sprintf(" %q", key)
			}
			notes = append(notes, name+": not expressible as a line; FROM provides it")
			return
		}
		file.Commands = append(file.Commands, c)
	}
	for _, c := range []struct{ name, value string }{
		{modelfile.Template, t.Own}, {modelfile.System, t.System},
		{modelfile.Renderer, t.Renderer}, {modelfile.Parser, t.Parser}, {modelfile.Requires, t.Requires},
	} {
		if c.value != "" {
			add(c.name, "", c.value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Parameters)) {
		for _, v := range ParameterValues(t.Parameters[name]) {
			add(modelfile.Parameter, name, v)
		}
	}
	messages := len(file.Commands)
	for _, m := range t.Messages {
		add(modelfile.Message, m.Role, m.Content)
	}
	if len(file.Commands)-messages != len(t.Messages) { // MESSAGE lines replace all messages, so it is all or none
		file.Commands = file.Commands[:messages]
	}
	for _, license := range t.Licenses {
		add(modelfile.License, "", license)
	}
	return file, notes
}

// expressible reports whether a command survives formatting and parsing.
func expressible(c modelfile.Command) bool {
	from := modelfile.Command{Name: modelfile.From, Value: "x"}
	formatted, err := (&modelfile.File{Commands: []modelfile.Command{from, c}}).Format()
	if err != nil {
		return false
	}
	reparsed, err := modelfile.Parse("", []byte(formatted))
	if err != nil || len(reparsed.Commands) != 2 {
		return false
	}
	got := reparsed.Commands[1]
	if got.Name != c.Name || got.Key != c.Key || got.Value != c.Value {
		return false
	}
	if c.Name != modelfile.Parameter {
		return true
	}
	params, _, err := reparsed.Params()
	if err != nil || len(params) != 1 {
		return false
	}
	if _, several := params[c.Key].([]string); several {
		return true
	}
	data, err := manifest.Marshal(params[c.Key])
	return err == nil && string(data) == c.Value
}

// ParameterText formats parameters as lines with a name and a value.
func ParameterText(params map[string]any) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(params)) {
		p, _ := parameters.Lookup(name)
		for _, v := range ParameterValues(params[name]) {
			if p.Type == parameters.Strings {
				v = fmt.Sprintf("%q", v)
			}
			fmt.Fprintf(&b, "%s %s\n", name, v)
		}
	}
	return b.String()
}

// ParameterValues formats the values of a parameter as in PARAMETER lines.
func ParameterValues(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, item := range v {
			out = append(out, ParameterValues(item)...)
		}
		return out
	}
	data, err := manifest.Marshal(v)
	if err != nil {
		return nil
	}
	return []string{string(data)}
}
