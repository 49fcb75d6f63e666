package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/cmd/terminal"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/browse"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"
)

func discoverCommand(a *cli.App) *cobra.Command {
	var o discoverOptions
	c := &cobra.Command{
		Use:   "discover NAME",
		Short: "List the artifacts attached to a model",
		Long: `List the artifacts attached to a model, such as signatures, bills of materials and reports, and the
artifacts attached to those.

A model in the store is looked up there. Other models, and all with --remote, are looked up in the
registry of NAME.`,
		Example: `  ingot discover team/model
  ingot discover registry.example.com/team/model \
    --artifact-type application/spdx+json --json`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return discover(c.Context(), a, args[0], o) },
	}
	f := c.Flags()
	f.StringVar(&o.artifactType, "artifact-type", "", "list only artifacts of this media `type`")
	f.BoolVar(&o.remote, "remote", false, "ask the registry even if the store has the model")
	f.BoolVar(&o.json, "json", false, "print JSON")
	o.transfer.AddConnection(c)
	return c
}

type discoverOptions struct {
	artifactType string
	remote, json bool
	transfer     transfer.Flags
}

type discoverJSON struct {
	Name      string          `json:"name"`
	Digest    string          `json:"digest"`
	Referrers []referrerEntry `json:"referrers"`
}

type referrerEntry struct {
	Digest       string            `json:"digest"`
	ArtifactType string            `json:"artifact_type"`
	MediaType    string            `json:"media_type"`
	Size         int64             `json:"size"` // of the manifest
	Annotations  map[string]string `json:"annotations,omitempty"`
	Referrers    []referrerEntry   `json:"referrers,omitempty"`
}

func discover(ctx context.Context, a *cli.App, arg string, o discoverOptions) error {
	name, err := manifest.ParseName(arg)
	if err != nil {
		return err
	}
	subject, list, err := referrers(ctx, a, &name, o)
	if err != nil {
		return err
	}
	referrers, err := browse.Referrers(ctx, list, subject, o.artifactType)
	if err != nil {
		return err
	}
	found := referrerEntries(referrers)
	if o.json {
		return a.PrintJSON(discoverJSON{name.String(), subject.String(), found})
	}
	name.Digest = subject
	if _, err := fmt.Fprintln(a.Out, name); err != nil {
		return err
	}
	return printReferrers(a.Out, found, "  ")
}

// referrers resolves the model and returns its digest and a lister of its referrers. It completes name.
func referrers(
	ctx context.Context, a *cli.App, name *manifest.Name, o discoverOptions,
) (digest.Digest, browse.Lister, error) {
	if !o.remote {
		store, err := store.Open("")
		if err != nil {
			return "", nil, err
		}
		raw, err := store.ResolveRaw(ctx, *name)
		if err == nil {
			*name = raw.Name
			return raw.Descriptor.Digest, store.Referrers, nil
		}
		if name.IsLocal() || !errors.Is(err, manifest.ErrNotFound) {
			return "", nil, err
		}
	}
	client, err := transfer.NewClient(a, &o.transfer, nil)
	if err != nil {
		return "", nil, err
	}
	m, err := client.Resolve(ctx, *name)
	if err != nil {
		return "", nil, err
	}
	return m.Digest, func(ctx context.Context, subject digest.Digest, artifactType string) ([]ocispec.Descriptor, error) {
		return client.Referrers(ctx, *name, subject, artifactType)
	}, nil
}

// referrerEntries describes artifacts for output.
func referrerEntries(list []browse.Referrer) []referrerEntry {
	entries := []referrerEntry{}
	for _, r := range list {
		entries = append(entries, referrerEntry{
			Digest:       r.Digest.String(),
			ArtifactType: r.ArtifactType,
			MediaType:    r.MediaType,
			Size:         r.Size,
			Annotations:  r.Annotations,
			Referrers:    referrerEntries(r.Referrers),
		})
	}
	return entries
}

func printReferrers(w io.Writer, entries []referrerEntry, indent string) error {
	for _, e := range entries {
		line := fmt.Sprintf("%s%s  %s", indent, e.Digest, cmp.Or(terminal.Line(e.ArtifactType), "-"))
		if title := e.Annotations[ocispec.AnnotationTitle]; title != "" {
			line += "  " + terminal.Line(title)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
		if err := printReferrers(w, e.Referrers, indent+"  "); err != nil {
			return err
		}
	}
	return nil
}
