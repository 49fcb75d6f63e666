package view

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/manifest"
	modelspec "github.com/modelpack/model-spec/specs-go/v1"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Contents holds the descriptors of a manifest or an index of any kind. It is empty for a manifest that is not JSON.
type Contents struct {
	MediaType    string               `json:"mediaType"`
	ArtifactType string               `json:"artifactType"`
	Config       ocispec.Descriptor   `json:"config"`
	Layers       []ocispec.Descriptor `json:"layers"`
	Manifests    []ocispec.Descriptor `json:"manifests"`
	Subject      *ocispec.Descriptor  `json:"subject"`
	Annotations  map[string]string    `json:"annotations"`
}

// List lists the layers, or the manifests of an index. known are the layers of a model image, in the same order.
func (c Contents) List(known []manifest.Layer) []Layer {
	list := []Layer{}
	for i, d := range c.Layers {
		l := Layer{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType,
			Name: cmp.Or(d.Annotations[modelspec.AnnotationFilepath], d.Annotations[ocispec.AnnotationTitle])}
		if i < len(known) {
			l.Kind, l.Name = string(known[i].Kind), known[i].Name
		}
		list = append(list, l)
	}
	for _, d := range c.Manifests {
		l := Layer{Digest: d.Digest.String(), Size: d.Size, MediaType: d.MediaType, Kind: "manifest"}
		if p := d.Platform; p != nil {
			l.Name = p.OS + "/" + p.Architecture
		}
		list = append(list, l)
	}
	return list
}

// ContentsOf returns the descriptors of a manifest.
func ContentsOf(manifestBytes []byte) Contents {
	var c Contents
	_ = json.Unmarshal(manifestBytes, &c)
	return c
}

// Layer describes a layer, or a manifest of an index.
type Layer struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	Kind      string `json:"kind"` // ingot's kind: tensor, file, license...
	Name      string `json:"name"` // tensor name or file path
}

// PrintLayers prints a table of layers.
func PrintLayers(a *cli.App, list []Layer) error {
	w := cli.NewTable(a.Out)
	w.Row("DIGEST", "SIZE", "KIND", "MEDIA TYPE", "NAME")
	for _, l := range list {
		w.Row(cli.Short(l.Digest), cli.Size(l.Size), l.Kind, l.MediaType, l.Name)
	}
	return w.Flush()
}

// Unknown describes a manifest that is not a model image.
type Unknown struct {
	Name         string  `json:"name"`
	Digest       string  `json:"digest"`
	MediaType    string  `json:"media_type"`
	ArtifactType string  `json:"artifact_type,omitempty"`
	ConfigType   string  `json:"config_type,omitempty"`
	Subject      string  `json:"subject,omitempty"`
	Size         int64   `json:"size"`
	Unknown      string  `json:"unknown"` // why it cannot be run
	Layers       []Layer `json:"layers"`
	Imports      string  `json:"-"` // what it is, if it holds a model's files
}

// DescribeUnknown describes a manifest that is not a model image, and why.
func DescribeUnknown(
	name manifest.Name, d ocispec.Descriptor, manifestBytes []byte, layers []Layer, why error,
) (Unknown, error) {
	var unknown *manifest.UnknownManifestError
	if errors.As(why, &unknown) {
		why = unknown
	}
	c := ContentsOf(manifestBytes)
	u := Unknown{
		Name: name.String(), Digest: d.Digest.String(), MediaType: cmp.Or(c.MediaType, d.MediaType),
		ArtifactType: c.ArtifactType, ConfigType: c.Config.MediaType, Unknown: why.Error(), Layers: layers,
	}
	if c.Subject != nil {
		u.Subject = c.Subject.Digest.String()
	}
	blobs, err := manifest.Blobs(manifestBytes)
	for _, b := range blobs {
		u.Size += b.Size
	}
	return u, err
}

// Print prints the description and the layers.
func (u Unknown) Print(a *cli.App) error {
	w := cli.NewTable(a.Out)
	u.Rows(w)
	if err := w.Flush(); err != nil || len(u.Layers) == 0 {
		return err
	}
	fmt.Fprintln(a.Out)
	return PrintLayers(a, u.Layers)
}

// runs says whether the image runs.
func (u Unknown) runs() string {
	if u.Imports != "" {
		return "converted, as `ingot run` and `ingot pull` do it: " + u.Imports
	}
	return "no: " + u.Unknown
}

// Rows adds the description to a table.
func (u Unknown) Rows(w cli.Table) {
	for _, l := range [][2]string{
		{"name", u.Name},
		{"digest", u.Digest},
		{"media type", u.MediaType},
		{"artifact type", u.ArtifactType},
		{"config type", u.ConfigType},
		{"subject", u.Subject},
		{"size", fmt.Sprintf("%s; layers: %d", cli.Size(u.Size), len(u.Layers))},
		{"runs", u.runs()},
	} {
		if l[1] != "" {
			w.Row(l[0], l[1])
		}
	}
}
