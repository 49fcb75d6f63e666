package processor

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/runtime"
)

// defaults reads the image's parameters. Parameters that it does not set have Ollama's defaults.
func (f Files) defaults() (d runtime.Defaults, err error) {
	d = runtime.StandardDefaults()
	for _, l := range f.Image.Layers {
		if l.Kind != manifest.KindParams {
			continue
		}
		b, err := f.read(l.Kind, l.Name)
		if err != nil {
			return d, err
		}
		var p struct {
			parameters.Set
			Stop []string `json:"stop"` // in an image it is a list
		}
		if err = pyjson.Unmarshal(b, &p); err == nil {
			if p.Stop != nil {
				p.Set.Stop = slices.Concat(d.Stop, p.Stop)
			}
			d = d.With(p.Set)
			err = parameters.CheckStops(d.Stop)
		}
		if err != nil {
			return d, fmt.Errorf("parameters of the image: %w", err)
		}
	}
	d.Sampling.Suppress, err = f.suppressed()
	return d, err
}

// suppressed returns the suppress_tokens of generation_config.json.
func (f Files) suppressed() ([]int32, error) {
	const name = "generation_config.json"
	b, err := f.read(manifest.KindFile, name)
	if err != nil || b == nil {
		return nil, err
	}
	ids, err := config.SuppressedTokens(name, b)
	slices.Sort(ids)
	return slices.Compact(ids), err
}
