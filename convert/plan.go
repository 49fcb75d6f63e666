package convert

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/safetensors"
	"github.com/opencontainers/go-digest"
)

// Plan is all that will be in an image.
type Plan struct {
	Config   manifest.Config `json:"config"`
	Files    []File          `json:"files"`   // sorted by name
	Tensors  []Tensor        `json:"tensors"` // in the order in which the model uses them
	Dropped  []Dropped       `json:"dropped"` // sorted by name
	Warnings []string        `json:"warnings"`
}

// Tensor is a blob with one logical tensor.
type Tensor struct {
	Name    string            `json:"name"`
	DType   safetensors.DType `json:"dtype"`
	Shape   []int64           `json:"shape"`
	Sources []Source          `json:"sources"`
	Bytes   int64             `json:"bytes"` // of data
	Size    int64             `json:"size"`  // of the blob
}

// Source is a tensor of the checkpoint.
type Source struct {
	Name  string            `json:"name"`
	File  string            `json:"file"` // in the checkpoint's folder
	DType safetensors.DType `json:"dtype"`
	Shape []int64           `json:"shape"`
}

// Dropped is a tensor of the checkpoint that the image leaves out.
type Dropped struct {
	Source
	Reason string `json:"reason"`
}

// PlanOptions is what an image gets beside the checkpoint.
type PlanOptions struct {
	Parameters map[string]any // default parameters of generation, by name
	Licenses   []string       // texts
}

// Plan decides what will be in the image. It checks everything that can be checked: the tensors against the
// configuration, the tokenizer, and whether a registry's manifest can hold it. It reads weights only where a tensor may
// be left out because it equals another.
func (inv *Inventory) Plan(ctx context.Context, opts PlanOptions) (*Plan, error) {
	match, err := inv.match()
	if err != nil {
		return nil, err
	}
	p := &Plan{Files: slices.Clone(inv.Files)}
	for _, m := range match.Tensors {
		t, err := inv.planTensor(m)
		if err != nil {
			return nil, err
		}
		p.Tensors = append(p.Tensors, t)
	}
	for _, d := range match.Dropped {
		source, err := inv.source(d.Name)
		if err != nil {
			return nil, err
		}
		if d.SameAs != "" {
			if err := inv.sameAs(ctx, d.Name, d.SameAs); err != nil {
				return nil, err
			}
		}
		p.Dropped = append(p.Dropped, Dropped{Source: source, Reason: d.Reason})
	}
	for _, s := range inv.Weights.Unindexed() {
		p.Dropped = append(p.Dropped, Dropped{Source: describe(s), Reason: "model.safetensors.index.json does not list it there"})
	}
	slices.SortStableFunc(p.Dropped, func(a, b Dropped) int { return strings.Compare(a.Name, b.Name) })
	warning, err := inv.checkTokenizer()
	if err != nil {
		return nil, err
	}
	if warning != "" {
		p.Warnings = append(p.Warnings, warning)
	}
	if err := p.addFiles(opts); err != nil {
		return nil, err
	}
	p.Config = inv.config(p.Tensors)
	return p, p.check()
}

// match finds the model's tensors in the checkpoint.
func (inv *Inventory) match() (arch.Match, error) {
	var have []arch.TensorInfo
	for _, s := range inv.Weights.Tensors() {
		have = append(have, arch.TensorInfo{Name: s.Name, DType: string(s.DType), Shape: s.Shape, File: s.File.Path()})
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

// whereAbsent says where an absent tensor should have been.
func (inv *Inventory) whereAbsent(p arch.Problem) arch.Problem {
	p.File = inv.Dir
	if files := inv.Weights.Files(); len(files) == 1 {
		p.File = files[0].Path()
	}
	for _, s := range inv.Weights.Unindexed() {
		if s.Name == p.Tensor {
			p.File = filepath.Join(inv.Dir, indexName)
			p.Detail = "it lies in " + filepath.Base(s.File.Path()) + " but the index does not list it"
		}
	}
	return p
}

func (inv *Inventory) planTensor(m arch.Matched) (Tensor, error) {
	t := Tensor{Name: m.Spec.Name, Shape: m.Spec.Shape}
	for _, name := range m.Sources {
		source, err := inv.source(name)
		if err != nil {
			return t, err
		}
		t.Sources = append(t.Sources, source)
	}
	if len(t.Sources) != 1 {
		return t, fmt.Errorf("tensor %s: made from %d tensors, which is not supported", t.Name, len(t.Sources))
	}
	t.DType = t.Sources[0].DType
	header, tensors, err := t.header()
	if err != nil {
		return t, err
	}
	t.Bytes = tensors[0].Size()
	t.Size = int64(len(header)) + t.Bytes
	return t, nil
}

// header gives all of the tensor's blob that precedes the data.
func (t Tensor) header() ([]byte, []safetensors.Tensor, error) {
	return safetensors.EncodeHeader([]safetensors.Tensor{{Name: t.Name, DType: t.DType, Shape: t.Shape}}, nil)
}

func (inv *Inventory) source(name string) (Source, error) {
	s, ok := inv.Weights.Lookup(name)
	if !ok {
		return Source{}, fmt.Errorf("%s: tensor %q: %w: it is not there", inv.Dir, name, ErrSource)
	}
	return describe(s), nil
}

func describe(s safetensors.Source) Source {
	return Source{Name: s.Name, File: filepath.Base(s.File.Path()), DType: s.DType, Shape: s.Shape}
}

// The files that are made for an image.
const (
	indexName  = "model.safetensors.index.json"
	paramsName = "params.json"
)

// addFiles adds the index over the blobs' paths, with which an extracted image loads elsewhere, and what the options say.
func (p *Plan) addFiles(opts PlanOptions) error {
	var index struct {
		Metadata struct {
			TotalSize int64 `json:"total_size"`
		} `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	index.WeightMap = map[string]string{}
	for _, t := range p.Tensors {
		index.Metadata.TotalSize += t.Bytes
		index.WeightMap[t.Name] = manifest.TensorPath(t.Name)
	}
	if err := p.addJSON(manifest.KindFile, indexName, index); err != nil {
		return err
	}
	if len(opts.Parameters) > 0 {
		if err := p.addJSON(manifest.KindParams, paramsName, opts.Parameters); err != nil {
			return err
		}
	}
	for _, text := range opts.Licenses {
		p.addFile(manifest.KindLicense, p.freeName("LICENSE"), []byte(text))
	}
	slices.SortStableFunc(p.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func (p *Plan) addJSON(kind manifest.Kind, name string, v any) error {
	data, err := marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.addFile(kind, name, data)
	return nil
}

func (p *Plan) addFile(kind manifest.Kind, name string, data []byte) {
	p.Files = append(p.Files, File{Kind: kind, Name: name, Size: int64(len(data)), Data: data})
}

// freeName returns name, or name with a number that no file has yet, in any case.
func (p *Plan) freeName(name string) string {
	for i, free := 2, name; ; i++ {
		if !slices.ContainsFunc(p.Files, func(f File) bool { return strings.EqualFold(f.Name, free) }) {
			return free
		}
		free = name + "." + strconv.Itoa(i)
	}
}

// config collects the facts for people and registries.
func (inv *Inventory) config(tensors []Tensor) manifest.Config {
	facts := inv.Model.Facts()
	c := manifest.Config{
		Architecture: facts.Architecture, ModelType: facts.ModelType, Format: "safetensors",
		Capabilities:  []string{manifest.CapCompletion},
		ContextLength: facts.Context, EmbeddingLength: facts.Hidden,
	}
	bytes := map[string]int64{}
	var types []string
	for _, t := range tensors {
		c.Params += safetensors.Tensor{Shape: t.Shape}.NumElements()
		if bytes[string(t.DType)] == 0 {
			types = append(types, string(t.DType))
		}
		bytes[string(t.DType)] += t.Bytes
	}
	slices.SortStableFunc(types, func(a, b string) int {
		if bytes[a] != bytes[b] {
			return int(min(max(bytes[b]-bytes[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	c.DType = strings.Join(types, ",")
	return c
}

// layers gives the image's layers without their digests, which are known when the blobs are written.
func (p *Plan) layers() []manifest.Layer {
	var out []manifest.Layer
	for _, f := range p.Files {
		out = append(out, manifest.Layer{Kind: f.Kind, Name: f.Name, Size: f.Size})
	}
	for _, t := range p.Tensors {
		out = append(out, manifest.Layer{Kind: manifest.KindTensor, Name: t.Name, Size: t.Size})
	}
	return out
}

// check finds out before any byte is written whether the image can be encoded: no two layers with one path, and a manifest
// that registries take.
func (p *Plan) check() error {
	layers := p.layers()
	for i := range layers {
		layers[i].Digest = digest.FromString("") // all digests have one length
	}
	_, _, err := manifest.EncodeModelPack(manifest.Image{Config: p.Config, Layers: layers})
	return err
}
