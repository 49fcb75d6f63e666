package runtime

import (
	"github.com/ingotml/ingot/modelfile/parameters"
)

// Apply sets the parameters that a set has. Those that depend on more than the request, such as num_ctx, are left to
// the caller.
func (r *Request) Apply(s parameters.Set) {
	set(&r.Sampling.Temperature, s.Temperature)
	set(&r.Sampling.TopK, s.TopK)
	set(&r.Sampling.TypicalP, s.TypicalP)
	set(&r.Sampling.TopP, s.TopP)
	set(&r.Sampling.MinP, s.MinP)
	set(&r.Sampling.RepeatPenalty, s.RepeatPenalty)
	set(&r.Sampling.PresencePenalty, s.PresencePenalty)
	set(&r.Sampling.FrequencyPenalty, s.FrequencyPenalty)
	set(&r.Sampling.RepeatLastN, s.RepeatLastN)
	set(&r.MaxTokens, s.NumPredict)
	if s.Seed != nil {
		r.Sampling.Seed = s.Seed
	}
	if s.Stop != nil {
		r.Stop = s.Stop
	}
	if n := s.DraftNumPredict; n != nil {
		if r.Draft = (Draft{Mode: DraftOff}); *n > 0 {
			r.Draft = Draft{Mode: DraftFixed, N: min(*n, MaxDraft)}
		}
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Defaults holds the parameters of requests that do not set them.
type Defaults struct {
	Sampling  Sampling
	MaxTokens int
	Stop      []string
	Draft     *Draft // nil: not set
	NumKeep   *int   // prompt tokens kept when the context is full; nil: not set
}

// StandardDefaults returns the defaults of the table of parameters, which are Ollama's.
func StandardDefaults() Defaults { return Defaults{}.With(parameters.Standard()) }

// With returns the defaults with some parameters replaced.
func (d Defaults) With(s parameters.Set) Defaults {
	r := Request{Sampling: d.Sampling, MaxTokens: d.MaxTokens, Stop: d.Stop}
	r.Apply(s)
	d.Sampling, d.MaxTokens, d.Stop = r.Sampling, r.MaxTokens, r.Stop
	if s.DraftNumPredict != nil {
		d.Draft = &r.Draft
	}
	if s.NumKeep != nil {
		d.NumKeep = s.NumKeep
	}
	return d
}

// ApplyTo sets the defaults on a request. A draft depth that the program has set stays.
func (d Defaults) ApplyTo(r *Request) {
	r.Sampling, r.MaxTokens, r.Stop = d.Sampling, d.MaxTokens, d.Stop
	if d.Draft != nil && r.Draft == (Draft{}) {
		r.Draft = *d.Draft
	}
}
