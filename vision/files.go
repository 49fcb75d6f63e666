package vision

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// ConfiguredBy returns p with the settings of a checkpoint's files, if it has any. read returns nil for a missing file.
// Import and load both use it.
func (p Processor) ConfiguredBy(read func(name string) ([]byte, error)) (Processor, error) {
	name, config, err := preprocessor(read)
	if err != nil || config == nil {
		return p, err
	}
	if p, err = p.Configured(config); err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// preprocessor returns the checkpoint's configuration for preparing pictures and the name of its file; nil if it has
// none. transformers 5 writes it as a part of processor_config.json, and reads that file first.
func preprocessor(read func(name string) ([]byte, error)) (name string, config []byte, err error) {
	name = "processor_config.json"
	whole, err := read(name)
	if err != nil {
		return name, nil, err
	}
	if whole != nil {
		var parts struct {
			Image json.RawMessage `json:"image_processor"`
		}
		if err := pyjson.Unmarshal(whole, &parts); err != nil {
			return name, nil, fmt.Errorf("%s: %w: %w", name, ErrConfig, err)
		}
		if parts.Image != nil {
			return name, parts.Image, nil
		}
	}
	name = "preprocessor_config.json"
	config, err = read(name)
	return name, config, err
}
