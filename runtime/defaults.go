package runtime

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/manifest"
)

// Defaults holds the parameters of requests that do not set them.
type Defaults struct {
	Sampling  Sampling
	MaxTokens int
	Stop      []string
}

// parameters holds an image's parameters, under their names in a Modelfile.
type parameters struct {
	Temperature      *float64 `json:"temperature"`
	TopK             *int     `json:"top_k"`
	TopP             *float64 `json:"top_p"`
	MinP             *float64 `json:"min_p"`
	RepeatPenalty    *float64 `json:"repeat_penalty"`
	PresencePenalty  *float64 `json:"presence_penalty"`
	FrequencyPenalty *float64 `json:"frequency_penalty"`
	RepeatLastN      *int     `json:"repeat_last_n"`
	Seed             *int64   `json:"seed"`
	NumPredict       *int     `json:"num_predict"`
	Stop             []string `json:"stop"`
}

// defaults reads the image's parameters. Parameters that it does not set have Ollama's defaults.
func (f files) defaults() (Defaults, error) {
	d := Defaults{Sampling: Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9, RepeatPenalty: 1, RepeatLastN: 64}}
	for _, l := range f.image.Layers {
		if l.Kind != manifest.KindParams {
			continue
		}
		b, err := f.read(l.Kind, l.Name)
		if err != nil {
			return d, err
		}
		var p parameters
		if err := json.Unmarshal(b, &p); err != nil {
			return d, fmt.Errorf("parameters of the image: %w", err)
		}
		p.apply(&d)
	}
	var err error
	d.Sampling.Suppress, err = f.suppressed()
	return d, err
}

// With returns the defaults with some parameters replaced, by their names in a Modelfile. It ignores parameters that
// requests do not have.
func (d Defaults) With(set map[string]any) (Defaults, error) {
	var p parameters
	b, err := json.Marshal(set)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrSampling, err)
	}
	if p.Stop != nil {
		d.Stop = nil
	}
	p.apply(&d)
	return d, nil
}

// suppressed returns the suppress_tokens of generation_config.json.
func (f files) suppressed() ([]int32, error) {
	const name = "generation_config.json"
	b, err := f.read(manifest.KindFile, name)
	if err != nil || b == nil {
		return nil, err
	}
	var c struct {
		Tokens []int32 `json:"suppress_tokens"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	slices.Sort(c.Tokens)
	return slices.Compact(c.Tokens), nil
}

func (p parameters) apply(d *Defaults) {
	set(&d.Sampling.Temperature, p.Temperature)
	set(&d.Sampling.TopK, p.TopK)
	set(&d.Sampling.TopP, p.TopP)
	set(&d.Sampling.MinP, p.MinP)
	set(&d.Sampling.RepeatPenalty, p.RepeatPenalty)
	set(&d.Sampling.PresencePenalty, p.PresencePenalty)
	set(&d.Sampling.FrequencyPenalty, p.FrequencyPenalty)
	set(&d.Sampling.RepeatLastN, p.RepeatLastN)
	set(&d.MaxTokens, p.NumPredict)
	if p.Seed != nil {
		d.Sampling.Seed = p.Seed
	}
	d.Stop = append(d.Stop, p.Stop...)
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
