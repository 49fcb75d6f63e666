package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/cmd/certify"
	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/cmd/cli/view"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/foreign"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	"github.com/ingotml/ingot/registry/browse"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/registry/sigstore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"
)

func inspectCommand(a *cli.App) *cobra.Command {
	var o inspectOptions
	c := &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show an image in a registry without pulling it",
		Long: `Show an image in a registry without pulling it: the model's properties, media types and sizes of
manifest, config and layers, and what is attached to it, such as signatures and certificates. Signatures are
not verified; "ingot pull --require-signature" does that.

A NAME without a registry is looked up in the store. --raw and --config print the bytes that the registry
stores. A Go template can use the fields of --json, such as .Digest, .Size, .Model.Parameters and .Layers.`,
		Example: `  ingot inspect registry.example.com/team/model:v1
  ingot inspect ghcr.io/me/model --format '{{.Digest}}'
  ingot inspect ghcr.io/me/model --raw | sha256sum`,
		Args: cli.Between(1, 1),
		RunE: func(c *cobra.Command, args []string) error { return inspect(a, c, args[0], o) },
	}
	o.format.Add(c)
	c.Flags().BoolVar(&o.raw, "raw", false, "print the manifest, byte for byte")
	c.Flags().BoolVar(&o.config, "config", false, "print the config blob, byte for byte")
	c.MarkFlagsMutuallyExclusive("raw", "config", "json")
	c.MarkFlagsMutuallyExclusive("raw", "config", "format")
	o.transfer.AddConnection(c)
	return c
}

type inspectOptions struct {
	raw, config bool
	format      cli.FormatFlags
	transfer    transfer.Flags
}

func inspect(a *cli.App, c *cobra.Command, arg string, o inspectOptions) error {
	ctx, out := c.Context(), cli.Output{App: a}
	var err error
	if out.Template, out.JSON, err = o.format.Parse(c); err != nil {
		return err
	}
	name, err := parseRemote(arg)
	if err != nil {
		return err
	}
	var client *registry.Client
	var st *store.Store
	if name.IsLocal() {
		st, err = store.Open("")
	} else {
		client, err = transfer.NewClient(a, &o.transfer, nil)
	}
	if err != nil {
		return err
	}
	var img *browse.Image
	switch {
	case st != nil:
		img, err = browse.Stored(ctx, st, name)
	default:
		img, err = browse.Inspect(ctx, client, name)
	}
	switch {
	case err != nil:
		return err
	case o.raw:
		_, err = a.Out.Write(img.Manifest.Bytes)
		return err
	case o.config && img.Unreadable != nil:
		return img.Unreadable
	case o.config:
		_, err = a.Out.Write(img.Config)
		return err
	}
	j, err := inspected(img)
	if err == nil {
		err = attachedTo(ctx, a, &j, img, client, st)
	}
	if err != nil {
		return err
	}
	return cli.Print(out, j, j.print)
}

// parseRemote parses a name for a command that asks its registry.
func parseRemote(arg string) (manifest.Name, error) {
	if hub.IsName(arg) {
		return manifest.Name{}, cli.Usagef("%s is on a hub, which is no registry; `ingot fit %s` shows it", arg, arg)
	}
	return manifest.ParseName(arg)
}

// inspectJSON describes an image.
type inspectJSON struct {
	Name         string                `json:"name"`
	Digest       string                `json:"digest"`
	MediaType    string                `json:"media_type"`
	ArtifactType string                `json:"artifact_type,omitempty"`
	Subject      string                `json:"subject,omitempty"`
	ManifestSize int64                 `json:"manifest_size"`
	Size         int64                 `json:"size"` // of config and layers, each once
	Config       *configJSON           `json:"config,omitempty"`
	Model        *view.Model           `json:"model,omitempty"`   // of a model image
	Unknown      string                `json:"unknown,omitempty"` // why it is no model image
	Imports      string                `json:"imports,omitempty"` // what it is, if it holds a model's files
	Annotations  map[string]string     `json:"annotations,omitempty"`
	Layers       []view.Layer          `json:"layers"`
	Referrers    []referrerEntry       `json:"referrers"`
	Certificates []certify.Certificate `json:"certificates,omitempty"`

	other view.Unknown // if it is no model image
}

type configJSON struct {
	MediaType string          `json:"media_type"`
	Digest    string          `json:"digest"`
	Size      int64           `json:"size"`
	Content   json.RawMessage `json:"content,omitempty"` // if it is JSON
}

func inspected(img *browse.Image) (inspectJSON, error) {
	m := img.Manifest
	c := view.ContentsOf(m.Bytes)
	layers := c.List(img.Model.Layers)
	why := img.Unknown
	if why == nil {
		why = cli.ErrFailed // not shown
	}
	desc := ocispec.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Bytes))}
	u, err := view.DescribeUnknown(img.Name, desc, m.Bytes, layers, why)
	j := inspectJSON{
		Name: u.Name, Digest: u.Digest, MediaType: u.MediaType, ArtifactType: u.ArtifactType, Subject: u.Subject,
		ManifestSize: desc.Size, Size: u.Size, Annotations: c.Annotations, Layers: layers, Referrers: []referrerEntry{},
	}
	if c.Config.Digest != "" {
		j.Config = &configJSON{MediaType: c.Config.MediaType, Digest: c.Config.Digest.String(), Size: c.Config.Size}
		if json.Valid(img.Config) {
			j.Config.Content = img.Config
		}
	}
	if u.Imports = withFiles(layers, m.Bytes, img.Config); u.Imports != "" {
		u.Unknown = ""
	}
	if img.Unknown != nil || u.Imports != "" {
		j.other, j.Unknown, j.Imports = u, u.Unknown, u.Imports
		return j, err
	}
	model := view.Describe(&store.Entry{Name: img.Name, Digest: m.Digest, Format: img.Format, Image: img.Model,
		ManifestBytes: m.Bytes}, &settings.Texts{})
	j.Model = &model
	return j, err
}

// withFiles names the layers of an image of another program, and says what it is if it holds a model.
func withFiles(layers []view.Layer, manifestBytes, config []byte) string {
	files, err := foreign.Parse(manifestBytes, config)
	if err != nil || files.Tensors() {
		return ""
	}
	for i, l := range files.Layers {
		layers[i].Name = l.Path
		layers[i].Kind = cmp.Or(string(l.Kind), string(l.Role))
	}
	if files.Model() != nil {
		return ""
	}
	return files.Describe()
}

// attachedTo adds what is attached to an image. If a registry does not list it, that is left out with a note.
func attachedTo(
	ctx context.Context, a *cli.App, j *inspectJSON, img *browse.Image, client *registry.Client, st *store.Store,
) error {
	list, err := img.Referrers(ctx)
	var unusable []error
	if err == nil {
		j.Referrers = referrerEntries(list)
		isStatement := func(r browse.Referrer) bool {
			return r.ArtifactType == sigstore.BundleMediaType || r.ArtifactType == sigstore.StatementMediaType
		}
		switch {
		case !slices.ContainsFunc(list, isStatement):
		case st != nil:
			j.Certificates, unusable, err = certify.List(ctx, st, img.Manifest.Digest)
		default:
			j.Certificates, unusable, err = certify.Remote(ctx, client, img.Name, img.Manifest.Digest)
		}
	}
	for _, err := range unusable {
		a.Note("warning: %v", err)
	}
	if err != nil && client != nil {
		return client.Skipped(img.Name.Host, fmt.Errorf("not all that is attached to %s is shown: %w", img.Name, err))
	}
	return err
}

func (j inspectJSON) print(a *cli.App) error {
	w := cli.NewTable(a.Out)
	if j.Model != nil {
		j.Model.Rows(w)
	} else {
		j.other.Rows(w)
	}
	w.Row("manifest", fmt.Sprintf("%s, %s", j.MediaType, cli.Size(j.ManifestSize)))
	if j.Config != nil {
		w.Row("config", fmt.Sprintf("%s, %s, %s", j.Config.MediaType, cli.Size(j.Config.Size), j.Config.Digest))
	}
	for _, t := range typesOf(j.Layers) {
		w.Row("layers", fmt.Sprintf("%d of %s, %s", t.n, t.mediaType, cli.Size(t.bytes)))
	}
	attachedRows(w, j.Referrers, "")
	for _, c := range j.Certificates {
		w.Row("certificate", view.CertificateSummary(c))
	}
	if err := w.Flush(); err != nil || j.Model != nil || len(j.Layers) == 0 {
		return err
	}
	fmt.Fprintln(a.Out)
	return view.PrintLayers(a, j.Layers)
}

// attachedRows adds a row for each artifact.
func attachedRows(w cli.Table, list []referrerEntry, indent string) {
	for _, r := range list {
		kind := r.ArtifactType
		switch predicate := sigstore.PredicateOf(r.Annotations); predicate {
		case "":
		case sigstore.PredicateType:
			kind = "signature"
		default:
			kind += ", " + predicate
		}
		if title := r.Annotations[ocispec.AnnotationTitle]; title != "" {
			kind += ", " + title
		}
		w.Row("attached", fmt.Sprintf("%s%s  %s", indent, digest.Digest(r.Digest), kind))
		attachedRows(w, r.Referrers, indent+"  ")
	}
}

// typeCount counts the layers of a media type.
type typeCount struct {
	mediaType string
	n         int
	bytes     int64
}

// typesOf counts layers by media type, in the order of their first layers.
func typesOf(layers []view.Layer) (list []typeCount) {
	for _, l := range layers {
		i := slices.IndexFunc(list, func(t typeCount) bool { return t.mediaType == l.MediaType })
		if i < 0 {
			i, list = len(list), append(list, typeCount{mediaType: l.MediaType})
		}
		list[i].n++
		list[i].bytes += l.Size
	}
	return list
}
