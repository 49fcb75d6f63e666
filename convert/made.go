package convert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// Names of generated files in an image.
const (
	indexName  = "model.safetensors.index.json"
	paramsName = "params.json"
	recordName = "ingot.json"
)

// Record is the JSON file with the creator's choices for an image. An image without such choices has none.
type Record struct {
	Parser       string     `json:"parser,omitempty"`       // of responses
	Renderer     string     `json:"renderer,omitempty"`     // of prompts
	Requires     string     `json:"requires,omitempty"`     // minimum program version
	Quantization *Precision `json:"quantization,omitempty"` // as requested; each blob describes its own type
}

// addFiles adds the index of the blobs' paths, with which an extracted image loads in other programs; the files that
// the options define; and the draft's configuration.
func (inv *Inventory) addFiles(p *Plan, opts PlanOptions) error {
	if err := p.addIndex(); err != nil {
		return err
	}
	params, warnings := inv.parameters(opts.Parameters)
	p.Warnings = append(p.Warnings, warnings...)
	p.Files = slices.DeleteFunc(p.Files, func(f File) bool { return f.Kind == manifest.KindParams })
	if len(params) > 0 {
		if err := p.addJSON(manifest.KindParams, paramsName, params); err != nil {
			return err
		}
	}
	if err := p.addTexts(opts); err != nil {
		return err
	}
	for _, text := range opts.Licenses {
		if inv.has(manifest.KindLicense, text) {
			continue // the image already has this text
		}
		p.addFile(manifest.KindLicense, p.freeName("LICENSE"), []byte(text))
	}
	if draft := inv.draft(opts); draft != nil {
		if config, ok := draft.file(configName); ok {
			p.addFile(manifest.KindFile, draftConfig, config.Data)
		}
	}
	if record := inv.record(p, opts); record != (Record{}) {
		if err := p.addJSON(manifest.KindFile, recordName, record); err != nil {
			return err
		}
	}
	slices.SortStableFunc(p.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

func (p *Plan) addIndex() error {
	var index struct {
		Metadata struct {
			TotalSize int64 `json:"total_size"`
		} `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	index.WeightMap = map[string]string{}
	for _, t := range p.Tensors {
		index.Metadata.TotalSize += t.Bytes
		for _, a := range t.Arrays {
			if other, twice := index.WeightMap[a.Name]; twice {
				return fmt.Errorf("tensor %s: its blob has the key %s, which is also a key of %s", t.Name, a.Name, other)
			}
			index.WeightMap[a.Name] = manifest.TensorPath(t.Name)
		}
	}
	return p.addJSON(manifest.KindFile, indexName, index)
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

// freeName returns name, with a number appended if a file has it already. Case is ignored.
func (p *Plan) freeName(name string) string {
	for i, free := 2, name; ; i++ {
		if !slices.ContainsFunc(p.Files, func(f File) bool { return strings.EqualFold(f.Name, free) }) {
			return free
		}
		free = name + "." + strconv.Itoa(i)
	}
}

// parameters merges the options' parameters with the image's and those of generation_config.json, in this order of
// precedence.
func (inv *Inventory) parameters(own map[string]any) (map[string]any, []string) {
	out := map[string]any{}
	var warnings []string
	if f, ok := inv.file("generation_config.json"); ok {
		out, warnings = generationParameters(f.Data)
	}
	for _, f := range inv.Files {
		if f.Kind != manifest.KindParams {
			continue
		}
		if params, err := decodeParameters(f.Data); err == nil {
			maps.Copy(out, params)
		}
	}
	maps.Copy(out, own)
	return out, warnings
}

// record merges the creator's choices with those of the source image.
func (inv *Inventory) record(p *Plan, opts PlanOptions) Record {
	r := inv.base
	if p.parser != "" {
		r.Parser = p.parser
	}
	if p.renderer != "" {
		r.Renderer = p.renderer
	}
	if opts.Requires != "" {
		r.Requires = opts.Requires
	}
	if q := opts.Precision; q.Type != 0 || q.Draft != 0 || len(q.Rules) > 0 {
		if r.Quantization != nil && q.Type == 0 { // only the draft is new
			base := r.Quantization
			q.Type, q.Uniform, q.Rules = base.Type, base.Uniform, slices.Concat(base.Rules, q.Rules)
		}
		r.Quantization = &q
	}
	return r
}

// config returns the image's properties for users and registries.
func (inv *Inventory) config(p *Plan, opts PlanOptions) (manifest.Config, error) {
	facts := inv.Model.Facts()
	c := manifest.Config{
		Architecture: facts.Architecture, ModelType: facts.ModelType, Format: "safetensors",
		ContextLength: facts.Context, EmbeddingLength: facts.Hidden,
	}
	if err := inv.describe(p, opts); err != nil {
		return c, err
	}
	c.Capabilities = p.capabilities
	bytes, packed := map[string]int64{}, map[quantize.Type]int64{}
	for _, t := range p.Tensors {
		c.Params += t.params()
		bytes[string(t.plainType())] += t.Bytes
		if q := t.target; q != 0 && !q.IsCast() {
			packed[q] += t.Bytes
		}
	}
	c.Quantization = mainType(packed, opts.Precision.Type).String()
	types := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int {
		if bytes[a] != bytes[b] {
			return int(min(max(bytes[b]-bytes[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	c.DType = strings.Join(types, ",")
	if base := inv.base.Quantization; base != nil && c.Quantization != "" && base.Type != 0 && opts.Precision.Type == 0 {
		c.Quantization = base.Type.String()
	}
	return c, nil
}

// mainType returns the requested type if any tensor has it, or else the type with the most bytes; 0 if there is none.
func mainType(packed map[quantize.Type]int64, asked quantize.Type) quantize.Type {
	if packed[asked] > 0 {
		return asked
	}
	var most quantize.Type
	for _, t := range slices.Sorted(maps.Keys(packed)) {
		if packed[t] > packed[most] {
			most = t
		}
	}
	return most
}

// plainType returns the type of a tensor's unpacked elements.
func (t Tensor) plainType() safetensors.DType {
	switch {
	case t.target == 0:
		return t.Source
	case t.target.IsCast():
		return safetensors.DType(t.target.DType())
	}
	if t.layout.stored != "" {
		return safetensors.DType(t.layout.stored)
	}
	return safetensors.DType(t.layout.coded())
}
