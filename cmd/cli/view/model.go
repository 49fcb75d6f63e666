// Package view describes models, images and certificates, for people and as JSON.
package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
)

// Model describes a model image.
type Model struct {
	Name         string   `json:"name"`
	Digest       string   `json:"digest"`
	Architecture string   `json:"architecture"`
	ModelType    string   `json:"model_type"`
	Parameters   int64    `json:"parameters"`
	DType        string   `json:"dtype"`
	Quantization string   `json:"quantization,omitempty"`
	Context      int64    `json:"context_length"`
	Embedding    int64    `json:"embedding_length"`
	Capabilities []string `json:"capabilities"`
	Encoding     string   `json:"encoding"`
	Partial      bool     `json:"partial,omitempty"` // the pull left out some blobs
	Size         int64    `json:"size"`
	Tensors      int      `json:"tensors"`
	Files        []string `json:"files"`

	Parser   string             `json:"parser,omitempty"`
	Renderer string             `json:"renderer,omitempty"`
	Requires string             `json:"requires,omitempty"`
	Defaults map[string]any     `json:"defaults,omitempty"` // generation parameters by name
	System   string             `json:"system,omitempty"`
	Named    []string           `json:"templates,omitempty"` // names of chat templates, unless it is only the default
	Messages []settings.Message `json:"messages,omitempty"`

	NotImported  []plan.NotImported    `json:"not_imported,omitempty"` // of the checkpoint
	Certificates []certify.Certificate `json:"certificates,omitempty"`
}

// Print prints the description.
func (s Model) Print(a *cli.App) error {
	w := cli.NewTable(a.Out)
	s.Rows(w)
	return w.Flush()
}

// Rows adds the description to a table.
func (s Model) Rows(w cli.Table) {
	line := func(name, value string) {
		if value != "" {
			w.Row(name, value)
		}
	}
	line("name", s.Name)
	line("digest", s.Digest)
	line("encoding", s.Encoding)
	switch {
	case s.Architecture != "":
		line("architecture", fmt.Sprintf("%s (%s)", s.Architecture, s.ModelType))
	default:
		line("architecture", s.ModelType)
	}
	if s.Parameters > 0 {
		line("parameters", cli.Count(s.Parameters))
	}
	line("type", s.DType)
	line("quantization", s.Quantization)
	if s.Context > 0 {
		line("context", fmt.Sprintf("%d tokens", s.Context))
	}
	if s.Embedding > 0 {
		line("embedding", fmt.Sprint(s.Embedding))
	}
	line("capabilities", strings.Join(s.Capabilities, ", "))
	line("parser", s.Parser)
	line("renderer", s.Renderer)
	line("requires", s.Requires)
	line("defaults", strings.Join(strings.Split(strings.TrimSpace(settings.ParameterText(s.Defaults)), "\n"), ", "))
	line("templates", cli.Excerpt(strings.Join(s.Named, ", "), 60))
	line("system", cli.Excerpt(s.System, 60))
	line("size", fmt.Sprintf("%s in %d tensors and %d files", cli.Size(s.Size), s.Tensors, len(s.Files)))
	line("files", strings.Join(s.Files, ", "))
	for _, n := range s.NotImported {
		line("not imported", n.String())
	}
	for _, c := range s.Certificates {
		line("certificate", CertificateSummary(c))
	}
	if s.Partial {
		line("partial", "the pull left out some blobs")
	}
}

// Describe returns the description of a model.
func Describe(e *store.Entry, texts *settings.Texts) Model {
	c := e.Image.Config
	s := Model{
		Name: e.Name.String(), Digest: e.Digest.String(), Architecture: c.Architecture, ModelType: c.ModelType,
		Parameters: c.Params, DType: c.DType, Quantization: c.Quantization, Context: c.ContextLength,
		Embedding: c.EmbeddingLength, Capabilities: append([]string{}, c.Capabilities...), Encoding: e.Format,
		Size: e.Image.Size(), Files: []string{},
		Parser: texts.Parser, Renderer: texts.Renderer, Requires: texts.Requires, Defaults: texts.Parameters,
		System: texts.System, Messages: texts.Messages,
	}
	for _, n := range texts.Templates.All() {
		s.Named = append(s.Named, n.Name)
	}
	if slices.Equal(s.Named, []string{chat.DefaultName}) {
		s.Named = nil
	}
	for _, l := range e.Image.Layers {
		if l.Kind == manifest.KindTensor {
			s.Tensors++
		} else {
			s.Files = append(s.Files, l.Name)
		}
	}
	return s
}

// Parts are the parts of a model that show can print on their own.
var Parts = []struct {
	Flag, Help string
	Print      func(*cli.App, *store.Entry, *settings.Texts) error
}{
	{"modelfile", "a Modelfile that creates the same image again", showModelfile},
	{"template", "the chat template", func(a *cli.App, e *store.Entry, t *settings.Texts) error {
		if _, err := t.Templates.Get(""); errors.Is(err, chat.ErrOtherTemplates) {
			a.Note("note: %s: %v", e.Name, err)
			return nil
		}
		return PrintPart(a, e, "chat template", t.Template)
	}},
	{"system", "the system prompt", func(a *cli.App, e *store.Entry, t *settings.Texts) error {
		return PrintPart(a, e, "system prompt", t.System)
	}},
	{"parameters", "the default generation parameters", func(a *cli.App, e *store.Entry, t *settings.Texts) error {
		return PrintPart(a, e, "default parameters", settings.ParameterText(t.Parameters))
	}},
	{"license", "the license texts", func(a *cli.App, e *store.Entry, t *settings.Texts) error {
		var texts []string
		for _, l := range t.Licenses {
			texts = append(texts, strings.TrimRight(l, "\n")+"\n")
		}
		return PrintPart(a, e, "license text", strings.Join(texts, "\n"))
	}},
}

func showModelfile(a *cli.App, e *store.Entry, t *settings.Texts) error {
	file, notes := t.Modelfile(e.Name.String())
	text, err := file.Format()
	if err != nil {
		return err
	}
	for _, n := range notes {
		text += "# " + n + "\n"
	}
	_, err = fmt.Fprint(a.Out, "# FROM includes the weights and files; the other lines repeat what the image has.\n", text)
	return err
}

// PrintPart prints a text, or a note if it is empty.
func PrintPart(a *cli.App, e *store.Entry, what, text string) error {
	if text == "" {
		a.Note("note: %s has no %s", e.Name, what)
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := fmt.Fprint(a.Out, text)
	return err
}
