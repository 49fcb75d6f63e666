// Package provenance records what an image was made from and how: each source tensor with its checksum, the steps and
// the rules that decided.
//
// A record is an artifact beside the image, a referrer of its manifest, so that the image's digest does not depend on
// it. It contains no folder and no time: the same source, options and program version give the same record. Records of
// the images that an image was made from are carried along.
package provenance

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"

	"github.com/ingotml/ingot/convert/adapter"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// Type is the artifact type of provenance records, and the media type of their layers.
const Type = "application/vnd.ingotml.provenance.v1+json"

// Record records an image's sources and how it was made.
type Record struct {
	Program string         `json:"program"`
	From    source.Origin  `json:"from"`
	Draft   *source.Origin `json:"draft,omitempty"` // from the DRAFT line
	// Adapters are in the order of the ADAPTER lines. Their tensors are among the sources.
	Adapters       []AdapterOrigin   `json:"adapters,omitempty"`
	Quantization   *recipe.Precision `json:"quantization,omitempty"`    // as requested: type, rules, recipe
	Statistics     digest.Digest     `json:"statistics,omitempty"`      // of the calibration that codes depend on
	StatisticsText digest.Digest     `json:"statistics_text,omitempty"` // of the text behind them
	// of channels that were scaled; nil = none
	Equalized *plan.Equalized `json:"equalized,omitempty"`
	Tensors   []MadeTensor    `json:"tensors"` // in the image's order; the draft's start with "draft."
	Dropped   []DroppedSource `json:"dropped,omitempty"`
	// NotImported sums the dropped tensors by the part of the model that is lost with them; nil = none is
	NotImported []plan.NotImported `json:"not_imported,omitempty"`
}

// AdapterOrigin is a merged adapter.
type AdapterOrigin struct {
	source.Origin
	Merged []source.MergedTensor `json:"merged"`
}

// MadeTensor is a tensor of the image.
type MadeTensor struct {
	Name      string         `json:"name"`
	Type      string         `json:"type"`
	Rule      string         `json:"rule"`
	Transform []string       `json:"transform"`
	Sources   []SourceTensor `json:"sources"`
}

// SourceTensor is a tensor in a checkpoint's file, with the checksum of its bytes there, or a blob in the store. A
// checksum is hexadecimal.
type SourceTensor struct {
	Name   string            `json:"name"`
	File   string            `json:"file,omitempty"`
	Blob   digest.Digest     `json:"blob,omitempty"`
	DType  safetensors.DType `json:"dtype"`
	Shape  []int64           `json:"shape"`
	BLAKE3 string            `json:"blake3,omitempty"`
}

// Digest returns the checksum, or the blob's digest, with its algorithm, such as "blake3:..."; "" if there is none.
func (t SourceTensor) Digest() string {
	switch {
	case t.Blob != "":
		return string(t.Blob)
	case t.BLAKE3 != "":
		return "blake3:" + t.BLAKE3
	}
	return ""
}

// DroppedSource is a tensor of the checkpoint that was neither used nor read.
type DroppedSource struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// Made is a written image, and what it was made from.
type Made struct {
	From     *source.Source
	Draft    *source.Source // of the DRAFT line, or nil
	Adapters []*adapter.Adapter
	Plan     *plan.Plan
	Written  *write.Written
	// Precision is what was asked for.
	Precision recipe.Precision
	Version   string // the program's
	// StatisticsText is the digest of the text behind the statistics.
	StatisticsText digest.Digest
	HashFiles      bool // add checksums of whole source files, which are read a second time
}

// record makes the record.
func (m Made) record(ctx context.Context) (*Record, error) {
	r := &Record{Program: "ingot " + cmp.Or(m.Version, "devel"), Tensors: []MadeTensor{}}
	var err error
	if r.From, err = m.From.Origin(ctx, m.HashFiles); err != nil {
		return nil, err
	}
	if m.Draft != nil {
		draft, err := m.Draft.Origin(ctx, m.HashFiles)
		if err != nil {
			return nil, err
		}
		r.Draft = &draft
	}
	if r.Adapters, err = m.adapterOrigins(ctx); err != nil {
		return nil, err
	}
	if q := m.Precision.Recorded(); q.Type != 0 || q.Draft != 0 || q.Uniform || len(q.Rules) > 0 {
		r.Quantization = &q
	}
	r.Statistics, r.StatisticsText, r.Equalized = m.Plan.Statistics, m.StatisticsText, m.Plan.Equalized
	for _, t := range m.Plan.Tensors {
		made := MadeTensor{Name: t.Name, Type: t.Type, Rule: t.Rule, Transform: t.Transform}
		for _, s := range t.Sources {
			for _, part := range s.Tensor.Parts() {
				from, err := m.sourceTensor(part)
				if err != nil {
					return nil, err
				}
				made.Sources = append(made.Sources, from)
			}
		}
		r.Tensors = append(r.Tensors, made)
	}
	for _, d := range m.Plan.Dropped {
		r.Dropped = append(r.Dropped, DroppedSource{d.Name, d.File, d.Reason})
	}
	r.NotImported = m.Plan.NotImported
	return r, nil
}

func (m Made) sourceTensor(t source.Tensor) (SourceTensor, error) {
	s := SourceTensor{Name: t.Name, DType: t.DType, Shape: append([]int64{}, t.Shape...)}
	if layer, ok := t.Layer(); ok {
		s.Blob = layer.Digest
		return s, nil
	}
	sum, err := m.Written.SourceChecksum(t)
	if s.File = t.File; sum != [len(sum)]byte{} {
		s.BLAKE3 = hex.EncodeToString(sum[:])
	}
	return s, err
}

// adapterOrigins describes the sources of the merged adapters.
func (m Made) adapterOrigins(ctx context.Context) ([]AdapterOrigin, error) {
	var out []AdapterOrigin
	for i, a := range m.Adapters {
		o := AdapterOrigin{Merged: m.Plan.Adapters[i].Merged}
		files := []source.OriginFile{
			{Name: adapter.ConfigName, Size: int64(len(a.Config))},
			{Name: adapter.WeightsName, Size: a.Weights().Info().Size()},
		}
		if r, ok := a.Folder.(source.Remote); ok {
			o.Repository, o.Revision, o.Commit = r.Commit()
			for i, f := range files {
				if r.Compared(f.Name) {
					files[i].ETag = r.ETag(f.Name)
				}
			}
		}
		if m.HashFiles {
			files[0].SHA256 = m.Plan.Adapters[i].Config.Encoded()
			sum, err := source.HashFile(ctx, a.Weights())
			if err != nil {
				return nil, err
			}
			files[1].SHA256 = fmt.Sprintf("%x", sum)
		}
		o.Files = files
		out = append(out, o)
	}
	return out, nil
}
