package processor

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/vision"
)

// Vision says how a model processes pictures.
type Vision struct {
	Config    arch.Pictures
	Processor vision.Processor
}

// readVision returns nil for a model without a vision tower.
func (f Files) readVision(config arch.Model) (*Vision, error) {
	m, ok := config.(interface{ Pictures() *arch.Pictures })
	if !ok || m.Pictures() == nil {
		return nil, nil
	}
	s := &Vision{Config: *m.Pictures()}
	s.Processor = vision.New(s.Config.Patch, s.Config.Temporal, s.Config.Merge)
	name, b, err := f.preprocessor()
	if err != nil || b == nil {
		return s, err
	}
	if s.Processor, err = s.Processor.Configured(b); err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// preprocessor returns the checkpoint's configuration for preparing pictures and the name of its file; nil if it has
// none. transformers 5 writes it as a part of processor_config.json, and reads that file first.
func (f Files) preprocessor() (name string, config []byte, err error) {
	name = "processor_config.json"
	whole, err := f.read(manifest.KindFile, name)
	if err != nil {
		return name, nil, err
	}
	if whole != nil {
		var parts struct {
			Image json.RawMessage `json:"image_processor"`
		}
		if err := json.Unmarshal(whole, &parts); err != nil {
			return name, nil, fmt.Errorf("%s: %w: %w", name, vision.ErrConfig, err)
		}
		if parts.Image != nil {
			return name, parts.Image, nil
		}
	}
	name = "preprocessor_config.json"
	config, err = f.read(manifest.KindFile, name)
	return name, config, err
}

// needImageToken returns how a prompt represents pictures, or an error if it cannot.
func (p *Processor) needImageToken() (*Vision, error) {
	switch {
	case p.Vision == nil:
		return nil, p.noTowerError()
	case p.Vision.Config.Image == 0:
		return nil, fmt.Errorf("config.json has no image_token_id: %w", runtime.ErrPictures)
	}
	return p.Vision, nil
}

func (p *Processor) noTowerError() error {
	return fmt.Errorf("%s without a vision tower: %w", p.Config.Facts().ModelType, runtime.ErrPictures)
}
