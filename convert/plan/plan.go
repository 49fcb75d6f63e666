// Package plan decides the complete contents of an image before a byte of it is written.
//
// A [Plan] is plain data, and its JSON form is what a dry run prints: each blob with its sources, the steps that make
// it, its type, the precision rule that decided, its shape and its size; and the files that are not tensors.
//
// Contract:
//   - A plan is a function of the source's headers and files, and of the options. The location of the source, the
//     machine and the time have no influence.
//   - Everything that can be checked without weights is checked here.
//   - [Plan.Key] identifies a plan together with its sources: equal keys have equal bytes.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/statistics"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/opencontainers/go-digest"
)

// Plan describes the complete contents of an image.
type Plan struct {
	Config  manifest.Config `json:"config"`
	Files   []source.File   `json:"files"`   // sorted by name
	Tensors []Tensor        `json:"tensors"` // in the model's order of use, the draft's last
	Dropped []Dropped       `json:"dropped"` // sorted by name
	// NotImported sums the dropped tensors by the part of the model that is lost with them, such as a tower.
	NotImported []NotImported `json:"not_imported,omitempty"`
	Warnings    []string      `json:"warnings"`
	// Assumed lists what a dry run cannot know, because it reads no data of tensors.
	Assumed  []string        `json:"assumed,omitempty"`
	Adapters []source.Merged `json:"adapters,omitempty"` // of ADAPTER lines, in order
	// Statistics is the digest of the statistics that codes depend on.
	Statistics digest.Digest `json:"statistics,omitempty"`
	Equalized  *Equalized    `json:"equalized,omitempty"` // nil = no channels are scaled
	// Recognized lists the packing and the layouts that were detected, and the tensors that revealed them.
	Recognized []packed.Recognized `json:"recognized"`
	Totals     Totals              `json:"totals"`
}

// Equalized says that channels were scaled by the statistics before weights were quantized.
type Equalized struct {
	Rule   string `json:"rule"`   // version of the arithmetic
	Inputs int    `json:"inputs"` // of linear layers whose channels are scaled
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
	Part   string `json:"part,omitempty"` // of the model that is lost with it; "" = nothing is
	Reason string `json:"reason"`
}

// Options are the parts of an image that do not come from the source.
type Options struct {
	Parameters map[string]any     // default generation parameters, by name
	Licenses   []string           // texts
	Template   *string            // prompt template; nil = the source image's, "" = none
	System     *string            // system message; as above
	Messages   []settings.Message // initial messages of a conversation; none = the source image's
	Requires   string             // minimum program version; "" = the source image's
	Parser     string             // of responses; "" = derived from the architecture and the template
	Renderer   string             // of prompts; as above
	Precision  recipe.Precision
	// Calibration has statistics of the model's inputs; nil means that codes depend on the weights alone.
	Calibration *statistics.Set
	Statistics  digest.Digest     // of Calibration
	Equalized   *Equalized        // how the source was scaled; nil = it was not
	Adapters    []source.Merged   // adapters already merged into the source
	Draft       *source.Source    // draft model; nil = the source's, if it has one
	LeftFiles   []source.LeftFile // beside those of the source
}

// planner makes a plan.
type planner struct {
	src   *source.Source
	opts  Options
	plan  *Plan
	about description
}

// New computes the contents of the image of a source. It runs all checks that need no weights: the tensor table, the
// tokenizer, the draft, and the size of the manifest. It reads weights only to verify that a dropped tensor equals
// another.
func New(ctx context.Context, src *source.Source, opts Options) (*Plan, error) {
	plan := &Plan{Files: slices.Clone(src.Files), Adapters: opts.Adapters, Statistics: opts.Statistics,
		Equalized: opts.Equalized}
	plan.Recognized, plan.Warnings = src.Retyped()
	plan.Warnings, plan.Assumed = append(plan.Warnings, src.Notes()...), src.Assumed()
	p := planner{src: src, opts: opts, plan: plan}
	if err := p.addTensors(ctx); err != nil {
		return nil, err
	}
	var err error
	if p.about, err = describe(src, src.Record(), opts); err != nil {
		return nil, err
	}
	plan.Config = p.config()
	if err := p.addFiles(); err != nil {
		return nil, err
	}
	plan.sumDropped(slices.Concat(src.LeftFiles(), opts.LeftFiles))
	plan.sum()
	return plan, plan.check()
}

// addTensors plans the tensors of the model and of its draft.
func (p *planner) addTensors(ctx context.Context) error {
	precision := p.opts.Precision
	chooser := newChooser(arch.RulesOf(p.src.Model, precision.RuleSet), precision, precision.Type)
	if err := p.planTensors(ctx, "", chooser); err != nil {
		return err
	}
	if err := p.plan.checkMerged(); err != nil {
		return err
	}
	warning, err := checkTokenizer(p.src)
	if err != nil {
		return err
	}
	if warning != "" {
		p.plan.Warnings = append(p.plan.Warnings, warning)
	}
	if err := p.checkGeneration(); err != nil {
		return err
	}
	if err := checkVision(p.src); err != nil {
		return err
	}
	if warning, err = checkPooling(p.src); err != nil {
		return err
	}
	if warning != "" {
		p.plan.Warnings = append(p.plan.Warnings, warning)
	}
	warnings, err := p.checkTemplates(ctx)
	if err != nil {
		return err
	}
	p.plan.Warnings = append(p.plan.Warnings, warnings...)
	unused := chooser.unused()
	if draft := p.draft(); draft != nil {
		both, err := p.planDraft(ctx, draft)
		if err != nil {
			return err
		}
		unused = intersect(unused, both)
	} else if precision.Draft != 0 {
		return fmt.Errorf("a type is set for the draft, but there is no DRAFT model")
	}
	if len(unused) > 0 {
		return fmt.Errorf("quantization rule %s: matches no tensor of the model", unused[0])
	}
	slices.SortStableFunc(p.plan.Dropped, func(a, b Dropped) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// draft returns the image's draft, or nil.
func (p *planner) draft() *source.Source {
	if p.opts.Draft != nil {
		return p.opts.Draft
	}
	return p.src.Draft
}

// planTensors adds the source's tensors, with prefixed names.
func (p *planner) planTensors(ctx context.Context, prefix string, c *chooser) error {
	match, err := p.src.Match()
	if err != nil {
		return err
	}
	p.plan.Recognized = append(p.plan.Recognized, p.src.Recognized()...)
	for _, l := range match.Layouts {
		p.plan.Recognized = append(p.plan.Recognized,
			packed.Recognized{Kind: "layout", What: l.What, From: []string{l.From}, Tensors: l.Tensors})
	}
	tied := arch.HasHead(p.src.Model) &&
		!slices.ContainsFunc(match.Tensors, func(m table.Matched) bool { return m.Spec.IsHead() })
	var requantized, dequantized []string
	for _, m := range match.Tensors {
		t, err := p.planTensor(m, prefix, c)
		if err != nil {
			return err
		}
		if prefix == "" {
			if err := p.calibrate(&t, tied); err != nil {
				return err
			}
		}
		p.plan.Tensors = append(p.plan.Tensors, t)
		if t.requantized {
			requantized = append(requantized, t.Name)
		}
		if t.dequantized {
			dequantized = append(dequantized, t.Name)
		}
	}
	if len(dequantized) > 0 {
		p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(
			"%d tensors, including %s, are dequantized and take more memory, because their nvfp4 codes have several scales of "+
				"whole matrices; -q int4 or another type makes them smaller", len(dequantized), dequantized[0]))
	}
	if len(requantized) > 0 {
		p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(
			"%d tensors, including %s, are quantized a second time, which adds to the error of the first; "+
				"use the unquantized checkpoint for better quality", len(requantized), requantized[0]))
	}
	return p.drop(ctx, match)
}

// drop adds the source's tensors that the image does not contain.
func (p *planner) drop(ctx context.Context, match table.Match) error {
	add := func(t *source.Tensor, part, reason string) {
		p.plan.Dropped = append(p.plan.Dropped, Dropped{describeTensor(t), part, reason})
	}
	for _, i := range p.src.Ignored() {
		add(&i.Tensor, i.Part, i.Reason)
	}
	for _, d := range match.Dropped {
		t, err := p.src.Lookup(d.Name)
		if err != nil {
			return err
		}
		switch same := sourceOf(match, d.SameAs); {
		case d.SameAs == "":
		case p.src.HeadersOnly():
			p.plan.Assumed = append(p.plan.Assumed, d.Name+" equals "+same)
		default:
			if err := p.src.CheckSame(ctx, d.Name, same); err != nil {
				return err
			}
		}
		add(t, d.Part, d.Reason)
	}
	for _, t := range p.src.Unlisted() {
		add(&t, "unlisted tensors", source.IndexName+" does not list them")
	}
	return nil
}

// sourceOf returns the checkpoint's name of a table tensor that has a single source.
func sourceOf(match table.Match, name string) string {
	for _, m := range match.Tensors {
		if m.Spec.Name == name && len(m.Sources) == 1 {
			return m.Sources[0]
		}
	}
	return name
}

// sum computes the totals.
func (p *Plan) sum() {
	t := Totals{Tensors: len(p.Tensors)}
	byType := map[string]*ByType{}
	for _, tn := range p.Tensors {
		n := tn.Params()
		t.Params += n
		t.SourceBytes += tn.SourceBytes()
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
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Type, b.Type))
	})
	for _, f := range p.Files {
		t.FileBytes += f.Size
	}
	for _, d := range p.Dropped {
		t.DroppedBytes += d.Tensor.Size()
	}
	if t.Params > 0 {
		t.BitsPerWeight = float64(8*t.Bytes) / float64(t.Params)
	}
	p.Totals = t
}

// Layers returns the image's layers. Only reused blobs have a digest; the others get theirs when they are written.
func (p *Plan) Layers() []manifest.Layer {
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
	layers := p.Layers()
	for i := range layers {
		layers[i].Digest = digest.FromString("") // a placeholder of the right length
	}
	_, _, err := manifest.EncodeModelPack(manifest.Image{Config: p.Config, Layers: layers})
	return err
}

func intersect(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// checkMerged returns an error if an adapter changes a tensor that the image drops.
func (p *Plan) checkMerged() error {
	for _, a := range p.Adapters {
		for _, m := range a.Merged {
			used := slices.ContainsFunc(p.Tensors, func(t Tensor) bool {
				return slices.ContainsFunc(t.Sources, func(s Source) bool { return s.Name == m.Name })
			})
			if !used {
				return fmt.Errorf("ADAPTER: tensor %s: %w: the adapter changes it, but the image does not contain it",
					m.Name, source.ErrSource)
			}
		}
	}
	return nil
}
