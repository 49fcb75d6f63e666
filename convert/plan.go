package convert

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/convert/sources"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
)

// Plan describes the complete contents of an image.
type Plan struct {
	Config   manifest.Config `json:"config"`
	Files    []File          `json:"files"`   // sorted by name
	Tensors  []Tensor        `json:"tensors"` // in the model's order of use, the draft's last
	Dropped  []Dropped       `json:"dropped"` // sorted by name
	Warnings []string        `json:"warnings"`
	Adapters []AdapterPlan   `json:"adapters,omitempty"` // of ADAPTER lines, in order
	// Recognized lists the packing and the layouts that were detected, and the tensors that revealed them.
	Recognized []sources.Recognized `json:"recognized"`
	Totals     Totals               `json:"totals"`

	capabilities     []string
	parser, renderer string
}

// Totals are sums over a plan's tensors.
type Totals struct {
	Tensors       int      `json:"tensors"`
	Params        int64    `json:"parameters"`
	SourceBytes   int64    `json:"source_bytes"`
	Bytes         int64    `json:"bytes"`      // of the tensor blobs
	FileBytes     int64    `json:"file_bytes"` // of the other blobs
	DroppedBytes  int64    `json:"dropped_bytes"`
	BitsPerWeight float64  `json:"bits_per_weight"`
	Types         []ByType `json:"types"` // largest first
}

// ByType sums the tensors of one type.
type ByType struct {
	Type    string `json:"type"`
	Tensors int    `json:"tensors"`
	Params  int64  `json:"parameters"`
	Bytes   int64  `json:"bytes"`
}

// Dropped is a tensor of the checkpoint that the image does not contain.
type Dropped struct {
	Source
	Reason string `json:"reason"`
}

// PlanOptions are the parts of an image that do not come from the source.
type PlanOptions struct {
	Parameters map[string]any // default generation parameters, by name
	Licenses   []string       // texts
	Template   *string        // prompt template; nil = the source image's, "" = none
	System     *string        // system message; as above
	Messages   []Message      // initial messages of a conversation; none = the source image's
	Requires   string         // minimum program version; "" = the source image's
	Parser     string         // of responses; "" = derived from the architecture and the template
	Renderer   string         // of prompts; as above
	Precision  Precision
	Adapters   []AdapterPlan // adapters already merged into the inventory's weights
	Draft      *Inventory    // draft model; nil = the inventory's, if it has one
}

// Plan computes the contents of the image. It runs all checks that need no weights: the tensor table, the tokenizer,
// the draft, and the size of the manifest. It reads weights only to verify that a dropped tensor equals another.
func (inv *Inventory) Plan(ctx context.Context, opts PlanOptions) (*Plan, error) {
	p := &Plan{Files: slices.Clone(inv.Files), Adapters: opts.Adapters}
	chooser := newChooser(inv.Model.Rules(), opts.Precision, opts.Precision.Type)
	if err := inv.planTensors(ctx, p, "", chooser); err != nil {
		return nil, err
	}
	if err := p.checkMerged(); err != nil {
		return nil, err
	}
	warning, err := inv.checkTokenizer()
	if err != nil {
		return nil, err
	}
	if warning != "" {
		p.Warnings = append(p.Warnings, warning)
	}
	p.Warnings = append(p.Warnings, inv.checkTemplates(ctx, opts)...)
	unused := chooser.unused()
	if draft := inv.draft(opts); draft != nil {
		both, err := inv.planDraft(ctx, p, draft, opts.Precision)
		if err != nil {
			return nil, err
		}
		unused = intersect(unused, both)
	} else if opts.Precision.Draft != 0 {
		return nil, fmt.Errorf("a type is set for the draft, but there is no DRAFT model")
	}
	if len(unused) > 0 {
		return nil, fmt.Errorf("quantization rule %s: matches no tensor of the model", unused[0])
	}
	slices.SortStableFunc(p.Dropped, func(a, b Dropped) int { return strings.Compare(a.Name, b.Name) })
	if p.Config, err = inv.config(p, opts); err != nil {
		return nil, err
	}
	if err := inv.addFiles(p, opts); err != nil {
		return nil, err
	}
	p.sum()
	return p, p.check()
}

// planTensors adds an inventory's tensors, with prefixed names.
func (inv *Inventory) planTensors(ctx context.Context, p *Plan, prefix string, c *chooser) error {
	match, err := inv.match()
	if err != nil {
		return err
	}
	var requantized []string
	p.Recognized = append(p.Recognized, inv.recognized...)
	for _, l := range match.Layouts {
		p.Recognized = append(p.Recognized,
			sources.Recognized{Kind: "layout", What: l.What, From: []string{l.From}, Tensors: l.Tensors})
	}
	p.Dropped = append(p.Dropped, inv.ignored...)
	for _, m := range match.Tensors {
		t, err := inv.planTensor(m, prefix, c)
		if err != nil {
			return err
		}
		p.Tensors = append(p.Tensors, t)
		if t.requantized {
			requantized = append(requantized, t.Name)
		}
	}
	if len(requantized) > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf(
			"%d tensors, including %s, are quantized a second time, which adds to the error of the first; "+
				"use the unquantized checkpoint for better quality", len(requantized), requantized[0]))
	}
	for _, d := range match.Dropped {
		source, err := inv.lookup(d.Name)
		if err != nil {
			return err
		}
		if d.SameAs != "" {
			if err := inv.sameAs(ctx, d.Name, sourceOf(match, d.SameAs)); err != nil {
				return err
			}
		}
		p.Dropped = append(p.Dropped, Dropped{Source: source.describe(), Reason: d.Reason})
	}
	for _, w := range inv.unlisted {
		p.Dropped = append(p.Dropped, Dropped{Source: w.describe(), Reason: indexName + " does not list it there"})
	}
	return nil
}

// sourceOf returns the checkpoint's name of a table tensor that has a single source.
func sourceOf(match arch.Match, name string) string {
	for _, m := range match.Tensors {
		if m.Spec.Name == name && len(m.Sources) == 1 {
			return m.Sources[0]
		}
	}
	return name
}

// match matches the checkpoint's tensors against the model's tensor table.
func (inv *Inventory) match() (arch.Match, error) {
	var have []arch.TensorInfo
	for _, w := range inv.weights {
		info := arch.TensorInfo{Name: w.Name, DType: string(w.DType), Shape: w.Shape, File: w.path}
		if w.coded != nil {
			info.Note = w.coded.Format
		}
		have = append(have, info)
	}
	match, err := inv.Model.Table().Check(have)
	var wrong *arch.TableError
	if !errors.As(err, &wrong) {
		return match, err
	}
	for i, p := range wrong.Problems {
		if p.Kind == arch.Absent {
			wrong.Problems[i] = inv.whereAbsent(p)
		}
	}
	return match, wrong
}

// whereAbsent adds the expected file of an absent tensor to the problem.
func (inv *Inventory) whereAbsent(p arch.Problem) arch.Problem {
	p.File = inv.From
	if inv.checkpoint != nil {
		if files := inv.checkpoint.Files(); len(files) == 1 {
			p.File = files[0].Path()
		}
	}
	for _, w := range inv.unlisted {
		if w.Name == p.Tensor {
			p.File = filepath.Join(inv.From, indexName)
			p.Detail = "it is in " + w.file + " but not in the index"
		}
	}
	return p
}

// sum computes the totals.
func (p *Plan) sum() {
	t := Totals{Tensors: len(p.Tensors)}
	byType := map[string]*ByType{}
	for _, tn := range p.Tensors {
		n := tn.params()
		t.Params += n
		t.SourceBytes += tn.sourceBytes()
		t.Bytes += tn.Bytes
		if byType[tn.Type] == nil {
			byType[tn.Type] = &ByType{Type: tn.Type}
		}
		b := byType[tn.Type]
		b.Tensors++
		b.Params += n
		b.Bytes += tn.Bytes
	}
	for _, b := range byType {
		t.Types = append(t.Types, *b)
	}
	slices.SortFunc(t.Types, func(a, b ByType) int {
		if a.Bytes != b.Bytes {
			return int(min(max(b.Bytes-a.Bytes, -1), 1))
		}
		return strings.Compare(a.Type, b.Type)
	})
	for _, f := range p.Files {
		t.FileBytes += f.Size
	}
	for _, d := range p.Dropped {
		t.DroppedBytes += d.size()
	}
	if t.Params > 0 {
		t.BitsPerWeight = float64(8*t.Bytes) / float64(t.Params)
	}
	p.Totals = t
}

// layers returns the image's layers. Only reused blobs have a digest; the others get theirs when they are written.
func (p *Plan) layers() []manifest.Layer {
	var out []manifest.Layer
	for _, f := range p.Files {
		out = append(out, manifest.Layer{Kind: f.Kind, Name: f.Name, Size: f.Size})
	}
	for _, t := range p.Tensors {
		out = append(out, manifest.Layer{Kind: manifest.KindTensor, Name: t.Name, Size: t.Size, Digest: t.Digest})
	}
	return out
}

// check verifies, before any byte is written, that the image can be encoded: layer paths are unique, and the manifest
// is within the registries' limits.
func (p *Plan) check() error {
	layers := p.layers()
	for i := range layers {
		layers[i].Digest = digest.FromString("") // a placeholder of the right length
	}
	_, _, err := manifest.EncodeModelPack(manifest.Image{Config: p.Config, Layers: layers})
	return err
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}
