package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/jsonread"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// File is a file of a model.
type File struct {
	Name string
	Data []byte
}

// TemplateFile is the name of the File that holds the TEMPLATE of a Modelfile. It replaces the model's own templates.
const TemplateFile = "TEMPLATE"

// AdditionalDir is the folder of a model that holds named templates, a file each.
const AdditionalDir = "additional_chat_templates"

const additionalExt = ".jinja"

// baseFiles can hold a model's templates. The first that has any decides.
var baseFiles = []string{"chat_template.jinja", "chat_template.json", "tokenizer_config.json"}

// HoldsTemplate reports whether a model's file with this name can hold chat templates.
func HoldsTemplate(name string) bool {
	base := path.Base(name)
	return slices.Contains(baseFiles, name) || name == AdditionalDir+"/"+base && path.Ext(base) == additionalExt &&
		!strings.HasPrefix(base, ".")
}

// TemplateFiles returns the names of the files of a folder that can hold chat templates.
func TemplateFiles(folder fs.ReadDirFS) ([]string, error) {
	entries, err := folder.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if HoldsTemplate(e.Name()) && !e.IsDir() {
			out = append(out, e.Name())
		}
	}
	more, err := AdditionalFiles(folder)
	return append(out, more...), err
}

// AdditionalFiles returns the names of the files of named templates that a folder has in AdditionalDir.
func AdditionalFiles(folder fs.ReadDirFS) ([]string, error) {
	entries, err := folder.ReadDir(AdditionalDir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if name := AdditionalDir + "/" + e.Name(); HoldsTemplate(name) && !e.IsDir() {
			out = append(out, name)
		}
	}
	return out, err
}

// ReadTemplates reads the chat templates in a model's files. A TEMPLATE is the only one. Else those of the additional
// folder join the templates of chat_template.jinja, or else chat_template.json, or else tokenizer_config.json. Of two
// with the same name, the folder's counts, as in transformers. A model of a chat format that is published without a
// template gets the built-in one. What cannot be read is the set's error.
func ReadTemplates(files []File, format string) *Templates {
	t := &Templates{}
	find := func(name string) (File, bool) {
		i := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
		if i < 0 {
			return File{}, false
		}
		return files[i], true
	}
	if f, ok := find(TemplateFile); ok && len(f.Data) > 0 {
		t.add(Named{DefaultName, string(f.Data), f.Name})
		return t
	}
	for _, name := range baseFiles {
		f, ok := find(name)
		if !ok || len(t.list) > 0 {
			continue
		}
		if path.Ext(name) == additionalExt {
			t.add(Named{DefaultName, string(f.Data), f.Name})
			continue
		}
		if err := t.addConfig(f); err != nil {
			return Unreadable(fmt.Errorf("%s: %w: %w", f.Name, ErrTemplate, err))
		}
	}
	for _, f := range files {
		if base, ok := strings.CutPrefix(f.Name, AdditionalDir+"/"); ok && HoldsTemplate(f.Name) {
			t.add(Named{strings.TrimSuffix(base, additionalExt), string(f.Data), f.Name})
		}
	}
	if text := BuiltIn(format); len(t.list) == 0 && text != "" {
		t.add(Named{DefaultName, text, ""})
	}
	return t
}

const wantTemplates = "must be a text, a list of objects with name and template, or an object with a text for each name"

// addConfig reads chat_template of a configuration.
func (t *Templates) addConfig(f File) error {
	o := jsonread.Options{Nesting: limits.TokenizerNesting, ReplaceSurrogates: true}
	value, err := jsonread.Member(pyjson.Plain(f.Data), "chat_template", o)
	if err != nil {
		return err
	}
	if len(value) == 0 || string(value) == "null" {
		return nil
	}
	said := pyjson.AsPython(value)
	switch said[0] { // Infinity and NaN are not objects
	case '"':
		return t.addText(f, DefaultName, "chat_template", value)
	case '{':
		r := jsonread.New(value, o)
		return r.Object(func(key []byte) error {
			name := string(key)
			text, err := element(&r)
			if err != nil {
				return err
			}
			return t.addText(f, name, fmt.Sprintf("chat_template[%q]", clip.Line(name, maxQuoted)), text)
		})
	case '[':
		r := jsonread.New(value, o)
		return r.Array(func(i int) error {
			text, err := element(&r)
			if err != nil {
				return err
			}
			return t.addElement(f, fmt.Sprintf("chat_template[%d]", i), text)
		})
	}
	return fmt.Errorf("chat_template = %s: %s", clip.Line(string(said), maxQuoted), wantTemplates)
}

// element consumes a value and returns its text.
func element(r *jsonread.Reader) ([]byte, error) {
	r.Peek()
	start := r.Pos
	err := r.Skip()
	return r.Text[start:r.Pos], err
}

// addElement adds an element of a list, whose other keys have no influence.
func (t *Templates) addElement(f File, key string, value []byte) error {
	var one map[string]json.RawMessage
	var name string
	switch {
	case json.Unmarshal(value, &one) != nil || one == nil:
		return fmt.Errorf("%s = %s: must be an object with name and template", key, clip.Line(string(value), maxQuoted))
	case json.Unmarshal(one["name"], &name) != nil || string(one["name"]) == "null":
		return fmt.Errorf("%s.name: must be a text", key)
	}
	return t.addText(f, name, key+".template", one["template"])
}

// addText adds a template whose text is a JSON string. null counts as none.
func (t *Templates) addText(f File, name, key string, value []byte) error {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		said := " is missing"
		if value != nil {
			said = " = " + clip.Line(string(value), maxQuoted)
		}
		return fmt.Errorf("%s%s: must be a text", key, said)
	}
	t.add(Named{name, text, f.Name})
	return nil
}
