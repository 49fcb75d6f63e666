package store

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/ollama/exchange"
	"github.com/ingotml/ingot/registry/layout"
	"github.com/spf13/cobra"
)

func cpCommand(a *cli.App) *cobra.Command {
	var format string
	var asJSON bool
	var o remoteCopy
	c := &cobra.Command{
		Use:   "cp SRC DST",
		Short: "Copy a model to another name, encoding, registry, OCI layout or Ollama store",
		Long: `Copy a model to another name. This writes only the name, unless --format converts the manifest to
another encoding; the blobs stay the same. create stores modelpack, and Ollama's client reads ollama.
Converting a model to the other encoding and back restores its digest.

If both names have a registry and the store lacks SRC, or with --remote, the model is copied from one
repository to the other, with its signatures and other attached artifacts, and without the store: blobs are
mounted within a registry, or else streamed. The digest stays the same. To resume, run it again.
--all-tags copies every tag of the repository or layout SRC to DST, except those that are the same there.

oci:DIR[:TAG] is an image in an OCI layout, which is a folder, and oci-archive:FILE[:TAG] in an archive of
one. Its signatures are copied too, the digest stays the same, and other images in the layout stay. Without
TAG, a new image gets its whole name. A name with a registry is there, unless the store has SRC.

A name with the prefix ollama:// is in the Ollama store on this machine: $OLLAMA_MODELS, or else
~/.ollama/models, or else the folder of the Linux service. Blobs are hard-linked or cloned if that is
safe, or else copied; see docs/registries.md. A model in a GGUF file is converted as "ingot create" does
it (docs/gguf.md).`,
		Example: `  ingot cp mymodel registry.example.com/team/mymodel:1.0
  ingot cp mymodel mymodel:ollama --format ollama
  ingot cp ghcr.io/me/mymodel:v1 registry.example.com/team/mymodel:v1
  ingot cp ollama://qwen3.5:4b qwen3.5
  ingot cp ollama://llama3.2 llama3.2
  ingot cp mymodel ollama://me/mymodel
  ingot cp mymodel oci-archive:mymodel.tar
  ingot cp oci:layout:v1 registry.example.com/team/mymodel:v1`,
		Args: cli.Between(2, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if format != "" && format != manifest.FormatModelPack && format != manifest.FormatOllama {
				return cli.Usagef("--format %q: want %s or %s", format, manifest.FormatModelPack, manifest.FormatOllama)
			}
			if o.allTags {
				return copyAllTags(c.Context(), a, args[0], args[1], format, asJSON, &o)
			}
			if layout.IsRef(args[0]) || layout.IsRef(args[1]) {
				return copyLayout(c.Context(), a, args[0], args[1], format, asJSON, &o)
			}
			from, to := isOllama(args[0]), isOllama(args[1])
			switch {
			case from && to:
				return cli.Usagef("one of the two must be in ingot's store; use `ollama cp` within Ollama's store")
			case to && format == manifest.FormatModelPack:
				return cli.Usagef("Ollama does not read --format %s", format)
			}
			if remote, err := isRemoteCopy(c.Context(), a, args[0], args[1], format, &o); remote || err != nil {
				if err == nil {
					err = copyRemote(c.Context(), a, args[0], args[1], asJSON, o)
				}
				return err
			}
			result, err := cp(a, c, args[0], args[1], format, asJSON)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(result)
			}
			_, err = fmt.Fprintf(a.Out, "%s@%s\n", result.Name, result.Digest)
			return err
		},
	}
	c.Flags().StringVar(&format, "format", "", "encoding: modelpack or ollama (default the source's)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	o.add(c)
	formats := []string{manifest.FormatModelPack, manifest.FormatOllama}
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// cpJSON is the result of a copy. The byte counts are sizes of blobs and are set only for copies from or to an Ollama
// store.
type cpJSON struct {
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Present int64  `json:"present_bytes,omitempty"`
	Linked  int64  `json:"linked_bytes,omitempty"`
	Cloned  int64  `json:"cloned_bytes,omitempty"`
	Copied  int64  `json:"copied_bytes,omitempty"`
}

func isOllama(name string) bool { return strings.HasPrefix(name, ollama.Scheme) }

func cp(a *cli.App, c *cobra.Command, from, to, format string, asJSON bool) (cpJSON, error) {
	ctx := c.Context()
	switch {
	case isOllama(from):
		src, err := ollama.ParseName(from)
		if err != nil {
			return cpJSON{}, err
		}
		dst, err := manifest.ParseName(to)
		if err != nil {
			return cpJSON{}, err
		}
		store, err := a.OpenStore()
		if err != nil {
			return cpJSON{}, err
		}
		if d, err := copyGGUF(ctx, a, src, store, dst, format, asJSON); d != "" || err != nil {
			return cpJSON{Name: dst.String(), Digest: d.String()}, err
		}
		run := func(other *exchange.Ollama, o exchange.Options) (*exchange.Report, error) {
			o.Format = format
			return other.Import(ctx, src, store, dst, o)
		}
		return exchangeOllama(a, dst.String(), asJSON, run)
	case isOllama(to):
		dst, err := ollama.ParseName(to)
		if err != nil {
			return cpJSON{}, err
		}
		store, entry, err := models.Resolve(c, from)
		if err != nil {
			return cpJSON{}, err
		}
		run := func(other *exchange.Ollama, o exchange.Options) (*exchange.Report, error) {
			return other.Export(ctx, store, entry, dst, o)
		}
		return exchangeOllama(a, dst.String(), asJSON, run)
	}
	src, err := manifest.ParseName(from)
	if err != nil {
		return cpJSON{}, err
	}
	dst, err := manifest.ParseName(to)
	if err != nil {
		return cpJSON{}, err
	}
	store, err := a.OpenStore()
	if err != nil {
		return cpJSON{}, err
	}
	d, err := store.Copy(ctx, src, dst, format)
	return cpJSON{Name: dst.String(), Digest: d.String()}, err
}

// exchangeOllama copies a model from or to Ollama's store with a progress line. to is the name of the copy.
func exchangeOllama(a *cli.App,
	to string, asJSON bool, run func(*exchange.Ollama, exchange.Options) (*exchange.Report, error),
) (cpJSON, error) {
	other, err := exchange.Open("")
	if err != nil {
		return cpJSON{}, err
	}
	bar := cli.ByteProgress{Progress: a.Progress(asJSON), Verb: "copying"}
	x, err := run(other, exchange.Options{Progress: bar.Set})
	bar.End()
	if x == nil {
		return cpJSON{}, err
	}
	return cpJSON{to, x.Digest.String(), x.Present, x.Linked, x.Cloned, x.Copied}, err
}
