package processor

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
)

// defaults reads the image's parameters. Parameters that it does not set have Ollama's defaults.
func (f Files) defaults() (runtime.Defaults, error) {
	d := runtime.StandardDefaults()
	for _, l := range f.Image.Layers {
		if l.Kind != manifest.KindParams {
			continue
		}
		b, err := f.read(l.Kind, l.Name)
		if err != nil {
			return d, err
		}
		if err := d.SetJSON(b); err != nil {
			return d, fmt.Errorf("parameters of the image: %w", err)
		}
	}
	var err error
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
