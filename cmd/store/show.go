package store

import (
	"errors"
	"slices"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/view"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/spf13/cobra"
)

func showCommand(a *cli.App) *cobra.Command {
	var format cli.FormatFlags
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
		Args: cli.Between(1, 1),
	}
	f := c.Flags()
	format.Add(c)
	var flags []string
	wanted := map[string]*bool{}
	option := func(flag, help string) {
		wanted[flag] = f.Bool(flag, false, "print "+help)
		flags = append(flags, flag)
	}
	for _, p := range view.Parts {
		option(p.Flag, p.Help)
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
			return cli.Usagef("%s cannot be combined", strings.Join(given, " and "))
		}
		out := cli.Output{App: a}
		var err error
		if out.Template, out.JSON, err = format.Parse(c); err != nil {
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
		for _, p := range view.Parts {
			if *wanted[p.Flag] {
				return p.Print(a, entry, texts)
			}
		}
		facts := view.Describe(entry, texts)
		facts.Partial = m.raw.Partial()
		if facts.Certificates, err = view.Certificates(c.Context(), a, m.store, m.raw.Descriptor.Digest); err != nil {
			return err
		}
		facts.NotImported = notImported(c.Context(), m)
		return cli.Print(out, facts, facts.Print)
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
