package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/spf13/cobra"
)

func (a *app) showCmd() *cobra.Command {
	var format formatFlags
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a model's properties or one of its parts",
		Long: `Show a model's properties, or print one of its parts.

--modelfile prints a Modelfile that creates the same image again; edit it to make a variant. --manifest and
--config print the bytes that a registry stores. --layers, --tensors, --certificates and --provenance can be
combined with --json and --format. A Go template can use the fields of --json, such as .Name, .ModelType, .Parameters,
.Files and .Defaults.

For artifacts that are not model images, show prints a summary, --manifest, --config and --layers. They
can be copied but not run.`,
		Example: `  ingot show mymodel
  ingot show mymodel --modelfile > Modelfile
  ingot show mymodel --format '{{.Architecture}} {{size .Size}}'
  ingot show mymodel --tensors --format '{{.Name}} {{.Quantization}}'
  ingot show mymodel --manifest | sha256sum`,
		Args: between(1, 1),
	}
	f := c.Flags()
	format.add(c)
	var flags []string
	wanted := map[string]*bool{}
	option := func(flag, help string) {
		wanted[flag] = f.Bool(flag, false, "print "+help)
		flags = append(flags, flag)
	}
	for _, p := range showParts {
		option(p.flag, p.help)
	}
	for _, p := range rawParts {
		option(p.flag, p.help)
	}
	for _, p := range listParts {
		option(p.flag, p.help)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		var given []string
		part, lists := false, false
		for _, name := range flags {
			if *wanted[name] {
				given = append(given, "--"+name)
				part, lists = true, slices.ContainsFunc(listParts, func(p listPart) bool { return p.flag == name })
			}
		}
		if !lists || len(given) > 1 {
			for _, name := range []string{"format", "json"} {
				if f.Changed(name) {
					given = append([]string{"--" + name}, given...)
				}
			}
		}
		if len(given) > 1 {
			return usagef("%s cannot be combined", strings.Join(given, " and "))
		}
		out := showOutput{app: a}
		var err error
		if out.template, out.json, err = format.parse(c); err != nil {
			return err
		}
		m, err := openShown(c, args[0])
		if err != nil {
			return err
		}
		for _, p := range rawParts {
			if *wanted[p.flag] {
				return p.print(a, m)
			}
		}
		for _, p := range listParts {
			if *wanted[p.flag] {
				return p.print(c.Context(), out, m)
			}
		}
		entry, texts, err := m.read()
		if errors.Is(err, manifest.ErrUnknownManifest) && !part {
			return printUnknown(out, m, err)
		}
		if err != nil {
			return err
		}
		for _, p := range showParts {
			if *wanted[p.flag] {
				return p.print(a, entry, texts)
			}
		}
		facts := show(entry, texts)
		facts.Partial = m.raw.Partial()
		if facts.Certificates, err = a.certificates(c.Context(), m.store, m.raw.Descriptor.Digest); err != nil {
			return err
		}
		facts.NotImported = notImported(c.Context(), m)
		return printShown(out, facts, facts.print)
	}
	return c
}

// shown is a manifest of the store. It need not be a model.
type shown struct {
	store *store.Store
	raw   *store.Raw
}

func openShown(c *cobra.Command, arg string) (*shown, error) {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return nil, err
	}
	store, err := store.Open("")
	if err != nil {
		return nil, err
	}
	raw, err := store.ResolveRaw(c.Context(), name)
	return &shown{store, raw}, err
}

// read decodes a model. If a partial pull left out the texts, they are empty.
func (m *shown) read() (*store.Entry, *settings.Texts, error) {
	entry, err := m.store.Entry(m.raw)
	if err != nil {
		return nil, nil, err
	}
	texts, err := settings.Read(m.store, entry)
	if errors.Is(err, manifest.ErrBlobMissing) && m.raw.Partial() {
		texts, err = &settings.Texts{}, nil
	}
	return entry, texts, err
}

// showOutput is the output format.
type showOutput struct {
	*app
	template *template.Template
	json     bool
}

// printShown prints a value as JSON, with the template, or with people.
func printShown[T any](o showOutput, value T, people func(*app) error) error {
	switch {
	case o.json:
		return o.printJSON(value)
	case o.template != nil:
		return printEach(o.app, o.template, value)
	}
	return people(o.app)
}

// resolveRaw opens the store and resolves a name to a manifest of any kind.
func resolveRaw(ctx context.Context, arg string) (*store.Store, *store.Raw, error) {
	name, err := parseStored(arg)
	if err != nil {
		return nil, nil, err
	}
	store, err := store.Open("")
	if err != nil {
		return nil, nil, err
	}
	raw, err := store.ResolveRaw(ctx, name)
	return store, raw, err
}

// resolve opens the store and resolves a name to a model.
func resolve(c *cobra.Command, arg string) (*store.Store, *store.Entry, error) {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return nil, nil, err
	}
	store, err := store.Open("")
	if err != nil {
		return nil, nil, err
	}
	entry, err := store.Resolve(c.Context(), name)
	return store, entry, err
}

type showJSON struct {
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

func show(e *store.Entry, texts *settings.Texts) showJSON {
	c := e.Image.Config
	s := showJSON{
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

func (s showJSON) print(a *app) error {
	w := newTable(a.out)
	s.rows(w)
	return w.flush()
}

func (s showJSON) rows(w table) {
	line := func(name, value string) {
		if value != "" {
			w.row(name, value)
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
		line("parameters", count(s.Parameters))
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
	line("templates", excerpt(strings.Join(s.Named, ", "), 60))
	line("system", excerpt(s.System, 60))
	line("size", fmt.Sprintf("%s in %d tensors and %d files", size(s.Size), s.Tensors, len(s.Files)))
	line("files", strings.Join(s.Files, ", "))
	for _, n := range s.NotImported {
		line("not imported", n.String())
	}
	for _, c := range s.Certificates {
		line("certificate", certificateSummary(c))
	}
	if s.Partial {
		line("partial", "the pull left out some blobs")
	}
}

// count formats a number of parameters for people.
func count(n int64) string {
	for _, u := range []struct {
		unit string
		of   float64
	}{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if float64(n) >= u.of {
			return fmt.Sprintf("%.3g%s", float64(n)/u.of, u.unit)
		}
	}
	return fmt.Sprint(n)
}
