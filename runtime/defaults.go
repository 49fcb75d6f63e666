package runtime

import (
	"encoding/json"
	"fmt"

	"github.com/ingotml/ingot/internal/limits/pyjson"
	"github.com/ingotml/ingot/modelfile"
)

// Defaults holds the parameters of requests that do not set them.
type Defaults struct {
	Sampling  Sampling
	MaxTokens int
	Stop      []string
	Draft     *Draft // nil: not set
	NumKeep   *int   // prompt tokens kept when the context is full; nil: not set
}

// ApplyTo sets the defaults on a request. A draft depth that the program has set stays.
func (d Defaults) ApplyTo(r *Request) {
	r.Sampling, r.MaxTokens, r.Stop = d.Sampling, d.MaxTokens, d.Stop
	if d.Draft != nil && r.Draft == (Draft{}) {
		r.Draft = *d.Draft
	}
}

// parameters holds an image's parameters, under their names in a Modelfile.
type parameters struct {
	Temperature      *float64 `json:"temperature"`
	TopK             *int     `json:"top_k"`
	TypicalP         *float64 `json:"typical_p"`
	TopP             *float64 `json:"top_p"`
	MinP             *float64 `json:"min_p"`
	RepeatPenalty    *float64 `json:"repeat_penalty"`
	PresencePenalty  *float64 `json:"presence_penalty"`
	FrequencyPenalty *float64 `json:"frequency_penalty"`
	RepeatLastN      *int     `json:"repeat_last_n"`
	Seed             *int64   `json:"seed"`
	NumPredict       *int     `json:"num_predict"`
	Stop             []string `json:"stop"`
	DraftNumPredict  *int     `json:"draft_num_predict"`
	NumKeep          *int     `json:"num_keep"`
}

// StandardDefaults returns the defaults of the table of parameters, which are Ollama's.
func StandardDefaults() Defaults {
	r := standardRequest
	return Defaults{Sampling: r.Sampling, MaxTokens: r.MaxTokens, Stop: r.Stop}
}

// SetJSON sets the parameters of a JSON object, under their names in a Modelfile. Stop texts are added to those of d.
func (d *Defaults) SetJSON(b []byte) error {
	var p parameters
	if err := pyjson.Unmarshal(b, &p); err != nil {
		return err
	}
	if err := p.apply(d); err != nil {
		return err
	}
	return modelfile.CheckStops(d.Stop)
}

// With returns the defaults with some parameters replaced, by their names in a Modelfile. It ignores parameters that
// requests do not have.
func (d Defaults) With(set map[string]any) (Defaults, error) {
	var p parameters
	b, err := json.Marshal(set)
	if err == nil {
		err = pyjson.Unmarshal(b, &p)
	}
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrSampling, err)
	}
	if p.Stop != nil {
		d.Stop = nil
	}
	return d, p.apply(&d)
}

// apply sets parameters over the defaults. Stop texts are added to those of d.
func (p parameters) apply(d *Defaults) error {
	r := Request{Sampling: d.Sampling, MaxTokens: d.MaxTokens}
	if err := r.Set(modelfile.Ollama, p); err != nil {
		return err
	}
	d.Sampling, d.MaxTokens, d.Stop = r.Sampling, r.MaxTokens, append(d.Stop, r.Stop...)
	if p.DraftNumPredict != nil {
		d.Draft = &r.Draft
	}
	if p.NumKeep != nil {
		d.NumKeep = p.NumKeep
	}
	return nil
}
