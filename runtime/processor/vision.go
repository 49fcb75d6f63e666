package processor

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/vision"
)

// Vision says how a model processes pictures.
type Vision struct {
	Config    config.Pictures
	Processor vision.Processor
}

// readVision returns nil for a model without a vision tower.
func (f Files) readVision(of arch.Model) (*Vision, error) {
	m, ok := of.(interface{ Pictures() *config.Pictures })
	if !ok || m.Pictures() == nil {
		return nil, nil
	}
	s := &Vision{Config: *m.Pictures()}
	s.Processor = vision.New(s.Config.Patch, s.Config.Temporal, s.Config.Merge)
	var err error
	s.Processor, err = s.Processor.ConfiguredBy(func(name string) ([]byte, error) {
		return f.read(manifest.KindFile, name)
	})
	return s, err
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
