package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/modelfile/parameters"
)

// addFiles adds the index of the blobs' paths, with which an extracted image loads in other programs; the files that
// the options define; and the draft's configuration.
func (p *planner) addFiles() error {
	plan, opts := p.plan, p.opts
	if err := plan.addIndex(); err != nil {
		return err
	}
	params, warnings, err := p.parameters(opts.Parameters)
	if err != nil {
		return err
	}
	plan.Warnings = append(plan.Warnings, warnings...)
	plan.Files = slices.DeleteFunc(plan.Files, func(f source.File) bool { return f.Kind == manifest.KindParams })
	if len(params) > 0 {
		if err := plan.addJSON(manifest.KindParams, settings.ParamsName, params); err != nil {
			return err
		}
	}
	if err := plan.addTexts(opts); err != nil {
		return err
	}
	if err := p.checkMessages(); err != nil {
		return err
	}
	for _, text := range opts.Licenses {
		if p.has(manifest.KindLicense, text) {
			continue // the image already has this text
		}
		plan.addFile(manifest.KindLicense, plan.freeName("LICENSE"), []byte(text))
	}
	if draft := p.draft(); draft != nil {
		if config, ok := draft.File(source.ConfigName); ok {
			plan.addFile(manifest.KindFile, blob.DraftConfig, config.Data)
		}
	}
	if record := p.record(); record != (settings.Record{}) {
		if err := plan.addJSON(manifest.KindFile, settings.RecordName, record); err != nil {
			return err
		}
	}
	slices.SortStableFunc(plan.Files, func(a, b source.File) int { return strings.Compare(a.Name, b.Name) })
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
	return p.addJSON(manifest.KindFile, source.IndexName, index)
}

func (p *Plan) addJSON(kind manifest.Kind, name string, v any) error {
	data, err := manifest.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.addFile(kind, name, data)
	return nil
}

func (p *Plan) addFile(kind manifest.Kind, name string, data []byte) {
	p.Files = append(p.Files, source.File{Kind: kind, Name: name, Size: int64(len(data)), Data: data})
}

// freeName returns name, with a number appended if a file has it already. Case is ignored.
func (p *Plan) freeName(name string) string {
	for i, free := 2, name; ; i++ {
		if !slices.ContainsFunc(p.Files, func(f source.File) bool { return strings.EqualFold(f.Name, free) }) {
			return free
		}
		free = name + "." + strconv.Itoa(i)
	}
}

// checkGeneration reads the ids of tokens in generation_config.json and config.json as the runtime does, and warns of
// those that the model does not have.
func (p *planner) checkGeneration() error {
	vocab := p.src.Model.Facts().Vocab
	for _, c := range []struct {
		name, key string
		read      func(name string, data []byte) ([]int32, error)
	}{
		{settings.GenerationName, "eos_token_id", config.EndTokens},
		{settings.GenerationName, "suppress_tokens", config.SuppressedTokens},
		{source.ConfigName, "eos_token_id", config.EndTokens},
	} {
		f, ok := p.src.File(c.name)
		if !ok {
			continue
		}
		ids, err := c.read(c.name, f.Data)
		if err != nil {
			return p.src.Located(err)
		}
		if i := slices.IndexFunc(ids, func(id int32) bool { return int64(id) >= vocab }); i >= 0 {
			p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf("%s: %s has %d, but the vocabulary has %d tokens: it is "+
				"ignored", c.name, c.key, ids[i], vocab))
		}
	}
	return nil
}

// checkMessages reads the messages as the runtime does: those of an image from elsewhere may be anything.
func (p *planner) checkMessages() error {
	for _, f := range p.plan.Files {
		if f.Kind != manifest.KindMessages {
			continue
		}
		if err := pyjson.Unmarshal(f.Data, new([]settings.Message)); err != nil {
			return p.src.Located(fmt.Errorf("%s: %w: %w", f.Name, source.ErrSource, err))
		}
	}
	return nil
}

// parameters merges the options' parameters with the image's and those of generation_config.json, in this order of
// precedence.
func (p *planner) parameters(own map[string]any) (map[string]any, []string, error) {
	out := map[string]any{}
	var warnings []string
	if f, ok := p.src.File(settings.GenerationName); ok {
		out, warnings = settings.GenerationParameters(f.Data)
	}
	for _, f := range p.src.Files {
		if f.Kind != manifest.KindParams {
			continue
		}
		params, err := settings.DecodeParameters(f.Data)
		if err != nil {
			return nil, nil, p.src.Located(fmt.Errorf("%s: %w: %w", f.Name, source.ErrSource, err))
		}
		maps.Copy(out, params)
	}
	maps.Copy(out, own)
	if err := parameters.Check(out); err != nil {
		return nil, nil, p.src.Located(fmt.Errorf("%s: %w: %w", settings.ParamsName, source.ErrSource, err))
	}
	return out, warnings, nil
}

// record merges the creator's choices with those of the source image.
func (p *planner) record() settings.Record {
	r, opts := p.src.Record(), p.opts
	if p.about.parser != "" {
		r.Parser = p.about.parser
	}
	if p.about.renderer != "" {
		r.Renderer = p.about.renderer
	}
	if opts.Requires != "" {
		r.Requires = opts.Requires
	}
	if q := opts.Precision.Recorded(); q.Type != 0 || q.Draft != 0 || len(q.Rules) > 0 {
		if r.Quantization != nil && q.Type == 0 { // only the draft is new
			base := r.Quantization
			q.Type, q.Uniform, q.RuleSet = base.Type, base.Uniform, base.RuleSet
			q.Rules = slices.Concat(base.Rules, q.Rules)
		}
		r.Quantization = &q
	}
	return r
}
