package cmd

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/spf13/cobra"
)

func (a *app) showCmd() *cobra.Command {
	var format formatFlags
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Tell what a model is",
		Long: `Tell what a model is, or print one of its parts.

--modelfile prints a Modelfile that creates the same image again; change its lines to make another one.
A Go template sees what --json prints, by names such as .Name, .ModelType, .Parameters, .Files and .Defaults.`,
		Example: `  ingot show mymodel
  ingot show mymodel --modelfile > Modelfile
  ingot show mymodel --format '{{.Architecture}} {{size .Size}}'`,
		Args: between(1, 1),
	}
	f := c.Flags()
	format.add(c)
	flags := []string{"json", "format"}
	wanted := map[string]*bool{}
	for _, p := range showParts {
		wanted[p.flag] = f.Bool(p.flag, false, "print "+p.help)
		flags = append(flags, p.flag)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		var given []string
		for _, name := range flags {
			if f.Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return usagef("%s exclude each other", strings.Join(given, " and "))
		}
		template, asJSON, err := format.parse(c)
		if err != nil {
			return err
		}
		store, entry, err := resolve(c, args[0])
		if err != nil {
			return err
		}
		texts, err := convert.ReadTexts(store, entry)
		if err != nil {
			return err
		}
		for _, p := range showParts {
			if *wanted[p.flag] {
				return p.print(a, entry, texts)
			}
		}
		facts := show(entry, texts)
		switch {
		case asJSON:
			return a.printJSON(facts)
		case template != nil:
			return printEach(a, template, facts)
		}
		return facts.print(a)
	}
	return c
}

// resolve opens the store and finds a model in it.
func resolve(c *cobra.Command, arg string) (*manifest.Store, *manifest.Entry, error) {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return nil, nil, err
	}
	store, err := manifest.Open("")
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
	Size         int64    `json:"size"`
	Tensors      int      `json:"tensors"`
	Files        []string `json:"files"`

	Parser   string            `json:"parser,omitempty"`
	Renderer string            `json:"renderer,omitempty"`
	Requires string            `json:"requires,omitempty"`
	Defaults map[string]any    `json:"defaults,omitempty"` // of generation, by parameter
	System   string            `json:"system,omitempty"`
	Messages []convert.Message `json:"messages,omitempty"`
}

func show(e *manifest.Entry, texts *convert.Texts) showJSON {
	c := e.Image.Config
	s := showJSON{
		Name: e.Name.String(), Digest: e.Digest.String(), Architecture: c.Architecture, ModelType: c.ModelType,
		Parameters: c.Params, DType: c.DType, Quantization: c.Quantization, Context: c.ContextLength,
		Embedding: c.EmbeddingLength, Capabilities: append([]string{}, c.Capabilities...), Size: e.Image.Size(), Files: []string{},
		Parser: texts.Parser, Renderer: texts.Renderer, Requires: texts.Requires, Defaults: texts.Parameters, System: texts.System, Messages: texts.Messages,
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
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}
	line("name", s.Name)
	line("digest", s.Digest)
	line("architecture", fmt.Sprintf("%s (%s)", s.Architecture, s.ModelType))
	line("parameters", count(s.Parameters))
	line("type", s.DType)
	line("quantization", s.Quantization)
	line("context", fmt.Sprintf("%d tokens", s.Context))
	line("embedding", fmt.Sprint(s.Embedding))
	line("capabilities", strings.Join(s.Capabilities, ", "))
	line("parser", s.Parser)
	line("renderer", s.Renderer)
	line("requires", s.Requires)
	line("defaults", strings.Join(strings.Split(strings.TrimSpace(parameterText(s.Defaults)), "\n"), ", "))
	line("system", clip(s.System))
	line("size", fmt.Sprintf("%s in %d tensors and %d files", size(s.Size), s.Tensors, len(s.Files)))
	line("files", strings.Join(s.Files, ", "))
	return w.Flush()
}

// count is a number of parameters for people.
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
