package registry

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"
)

func attachCommand(a *cli.App) *cobra.Command {
	var o attachOptions
	c := &cobra.Command{
		Use:   "attach NAME FILE --artifact-type TYPE",
		Short: "Attach a file to a model",
		Long: `Attach a file to a model, such as a bill of materials or an evaluation report, and print the
digest of its manifest.

The file becomes an OCI artifact whose subject is the model's manifest. The store keeps it as long as
the model. ` + "`ingot push`" + ` pushes it with the model, and ` + "`ingot discover`" + ` lists it.`,
		Example: `  ingot attach team/model sbom.spdx.json --artifact-type application/spdx+json
  ingot attach team/model report.md \
    --artifact-type application/vnd.example.evaluation \
    --annotation suite=mmlu`,
		Args: cli.Between(2, 2),
		RunE: func(c *cobra.Command, args []string) error { return attach(c.Context(), a, args[0], args[1], o) },
	}
	f := c.Flags()
	f.StringVar(&o.artifactType, "artifact-type", "", "media `type` of the artifact (required)")
	f.StringVar(&o.mediaType, "media-type", "", "media `type` of the file (default from its extension)")
	f.StringArrayVar(&o.annotations, "annotation", nil, "annotation of the artifact as `key=value` (repeatable)")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

type attachOptions struct {
	artifactType, mediaType string
	annotations             []string
	json                    bool
}

func attach(ctx context.Context, a *cli.App, arg, file string, o attachOptions) error {
	if o.artifactType == "" {
		return cli.Usagef("--artifact-type TYPE is required, such as application/spdx+json: " +
			"clients find the file by its type")
	}
	annotations, err := parseAnnotations(o.annotations)
	if err != nil {
		return err
	}
	store, raw, err := models.ResolveRaw(ctx, arg)
	if err != nil {
		return err
	}
	release, err := store.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	layer, err := storeFile(ctx, store, file)
	if err != nil {
		return err
	}
	if layer.MediaType = o.mediaType; layer.MediaType == "" {
		layer.MediaType = typeOfFile(file)
	}
	desc, err := store.Attach(ctx, manifest.Artifact{
		Type:        o.artifactType,
		Subject:     raw.Descriptor,
		Layers:      []ocispec.Descriptor{layer},
		Annotations: annotations,
	})
	if err != nil {
		return err
	}
	a.Note("attached %s (%s) to %s; `ingot push` pushes it with the model", filepath.Base(file), cli.Size(layer.Size),
		raw.Name)
	if o.json {
		return a.PrintJSON(attachedJSON{raw.Name.String(), raw.Descriptor.Digest.String(), desc.Digest.String()})
	}
	_, err = fmt.Fprintln(a.Out, desc.Digest)
	return err
}

// storeFile adds a file to the store as a blob. The descriptor's title annotation holds the file's name.
func storeFile(ctx context.Context, store *store.Store, file string) (ocispec.Descriptor, error) {
	f, err := os.Open(file)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return ocispec.Descriptor{}, err
	} else if info.IsDir() {
		return ocispec.Descriptor{}, fmt.Errorf("attach %s: it is a folder; attach its files one by one, or an archive", file)
	}
	w, err := store.NewBlob(ctx)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	defer w.Abort()
	if _, err := io.Copy(w, f); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("attach %s: %w", file, err)
	}
	d, n, err := w.Commit()
	return ocispec.Descriptor{Digest: d, Size: n,
		Annotations: map[string]string{ocispec.AnnotationTitle: filepath.Base(file)}}, err
}

func parseAnnotations(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := map[string]string{}
	for _, a := range list {
		key, value, ok := strings.Cut(a, "=")
		if !ok || key == "" {
			return nil, cli.Usagef("--annotation %q is not key=value", a)
		}
		if _, twice := m[key]; twice {
			return nil, cli.Usagef("--annotation %s is given twice", key)
		}
		m[key] = value
	}
	return m, nil
}

// typesOfFiles maps extensions to media types. The system's own tables differ between machines.
var typesOfFiles = map[string]string{
	".csv":  "text/csv",
	".html": "text/html",
	".json": "application/json",
	".md":   "text/markdown",
	".pdf":  "application/pdf",
	".png":  "image/png",
	".txt":  "text/plain",
	".xml":  "application/xml",
	".yaml": "application/yaml",
	".yml":  "application/yaml",
}

func typeOfFile(file string) string {
	if t := typesOfFiles[strings.ToLower(filepath.Ext(file))]; t != "" {
		return t
	}
	return "application/octet-stream"
}
