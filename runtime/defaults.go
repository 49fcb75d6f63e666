package runtime

import (
	"encoding/json"
	"fmt"
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

// StandardDefaults returns Ollama's defaults.
func StandardDefaults() Defaults {
	return Defaults{Sampling: Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9, RepeatPenalty: 1, RepeatLastN: 64}}
}

// SetJSON sets the parameters of a JSON object, under their names in a Modelfile. Stop texts are added to those of d.
func (d *Defaults) SetJSON(b []byte) error {
	var p parameters
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	p.apply(d)
	return nil
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
