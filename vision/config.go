package vision

import (
	"fmt"

	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// preprocessorConfig holds the keys of preprocessor_config.json. Old files bound the size by min_pixels and max_pixels,
// which take precedence.
type preprocessorConfig struct {
	Patch    *int `json:"patch_size"`
	Temporal *int `json:"temporal_patch_size"`
	Merge    *int `json:"merge_size"`
	Size     struct {
		Shortest *int `json:"shortest_edge"`
		Longest  *int `json:"longest_edge"`
	} `json:"size"`
	MinPixels *int      `json:"min_pixels"`
	MaxPixels *int      `json:"max_pixels"`
	Mean      []float64 `json:"image_mean"`
	Std       []float64 `json:"image_std"`
	Scale     *float64  `json:"rescale_factor"`
	Resample  *int      `json:"resample"`
	Resize    *bool     `json:"do_resize"`
	Rescale   *bool     `json:"do_rescale"`
	Normalize *bool     `json:"do_normalize"`
}

// bicubic is Pillow's number of the filter.
const bicubic = 3

// Configured returns p with the settings of a preprocessor_config.json. It ignores numbers that are not positive.
func (p Processor) Configured(config []byte) (Processor, error) {
	var f preprocessorConfig
	if err := pyjson.Unmarshal(config, &f); err != nil {
		return p, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	for _, same := range []struct {
		key    string
		is     int
		stated *int
	}{{"patch_size", p.Patch, f.Patch}, {"temporal_patch_size", p.Temporal, f.Temporal},
		{"merge_size", p.Merge, f.Merge}} {
		if s := same.stated; s != nil && *s > 0 && *s != same.is {
			return p, configError("%s is %d, the vision tower has %d", same.key, *s, same.is)
		}
	}
	for _, v := range []*int{f.Size.Shortest, f.MinPixels} {
		setPositive(&p.MinPixels, v)
	}
	for _, v := range []*int{f.Size.Longest, f.MaxPixels} {
		setPositive(&p.MaxPixels, v)
	}
	if p.MinPixels > p.MaxPixels {
		return p, configError("the smallest area (%d pixels) exceeds the largest (%d pixels)", p.MinPixels, p.MaxPixels)
	}
	if len(f.Mean) == 3 {
		p.Mean = [3]float64(f.Mean)
	}
	if len(f.Std) == 3 {
		p.Std = [3]float64(f.Std)
	}
	for _, s := range p.Std {
		if float32(s) == 0 {
			return p, configError("image_std has a zero")
		}
	}
	if f.Scale != nil && *f.Scale > 0 {
		p.Scale = *f.Scale
	}
	if f.Resample != nil && *f.Resample != bicubic {
		return p, configError("resample is %d: only bicubic (%d) is supported", *f.Resample, bicubic)
	}
	for _, step := range []struct {
		key string
		on  *bool
	}{{"do_resize", f.Resize}, {"do_rescale", f.Rescale}, {"do_normalize", f.Normalize}} {
		if step.on != nil && !*step.on {
			return p, configError("%s is false: only true is supported", step.key)
		}
	}
	return p, nil
}

func setPositive(to, from *int) {
	if from != nil && *from > 0 {
		*to = *from
	}
}

func configError(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrConfig)...)
}
