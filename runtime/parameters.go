package runtime

import (
	"fmt"
	"reflect"
	"time"

	"github.com/ingotml/ingot/modelfile"
)

// requestParameter says how a parameter of package modelfile is set on a request.
type requestParameter struct {
	name   string
	set    func(r *Request, value any) error
	number func(s *Sampling) *float64 // where a number is kept, which must be finite; nil: not such a number
}

// requestParameters is the one place that knows where a request keeps each parameter. An error names the first invalid
// one in this order.
var requestParameters = []requestParameter{
	number("temperature", func(s *Sampling) *float64 { return &s.Temperature }),
	setter("top_k", func(r *Request, v int) { r.Sampling.TopK = v }),
	number("typical_p", func(s *Sampling) *float64 { return &s.TypicalP }),
	number("top_p", func(s *Sampling) *float64 { return &s.TopP }),
	number("min_p", func(s *Sampling) *float64 { return &s.MinP }),
	number("repeat_penalty", func(s *Sampling) *float64 { return &s.RepeatPenalty }),
	number("presence_penalty", func(s *Sampling) *float64 { return &s.PresencePenalty }),
	number("frequency_penalty", func(s *Sampling) *float64 { return &s.FrequencyPenalty }),
	setter("repeat_last_n", func(r *Request, v int) { r.Sampling.RepeatLastN = v }),
	setter("seed", func(r *Request, v int64) { r.Sampling.Seed = &v }),
	setter("num_predict", func(r *Request, v int) { r.MaxTokens = v }),
	setter("stop", func(r *Request, v []string) { r.Stop = v }),
	setter("ignore_eos", func(r *Request, v bool) { r.IgnoreEOS = v }),
	setter("logit_bias", func(r *Request, v map[int32]float64) { r.Sampling.LogitBias = v }),
	setter("deadline_ms", func(r *Request, v int64) { r.Deadline = time.Duration(min(v, 1<<40)) * time.Millisecond }),
	setter("draft_num_predict", func(r *Request, v int) {
		if r.Draft = (Draft{Mode: DraftOff}); v > 0 {
			r.Draft = Draft{Mode: DraftFixed, N: min(v, MaxDraft)}
		}
	}),
	setter("draft", func(r *Request, v Draft) { r.Draft = v }),
	setter("priority", func(r *Request, v int) { r.Priority = v }),
}

// setter returns a parameter whose values have the type T, or one that converts to it, or point to either.
func setter[T any](name string, set func(r *Request, v T)) requestParameter {
	want := reflect.TypeFor[T]()
	return requestParameter{name: name, set: func(r *Request, value any) error {
		v := reflect.Indirect(reflect.ValueOf(value))
		if !v.CanConvert(want) {
			return fmt.Errorf("%s is %v: %w", name, value, ErrSampling)
		}
		set(r, v.Convert(want).Interface().(T))
		return nil
	}}
}

func number(name string, at func(s *Sampling) *float64) requestParameter {
	p := setter(name, func(r *Request, v float64) { *at(&r.Sampling) = v })
	p.number = at
	return p
}

// Set sets the parameters that a struct sets under their names in an API; see [modelfile.Given]. Parameters that
// depend on more than the request, such as num_ctx, are left to the caller.
func (r *Request) Set(a modelfile.API, from any) error {
	for p, v := range modelfile.Given(a, from) {
		if err := r.set(p.Name, v); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) set(name string, value any) error {
	for _, p := range requestParameters {
		if p.name == name {
			return p.set(r, value)
		}
	}
	return nil
}

// standardRequest has the table's defaults.
var standardRequest = func() (r Request) {
	for _, p := range modelfile.RequestParameters() {
		if p.Default != nil {
			_ = r.set(p.Name, p.Default) // a test holds that the types agree
		}
	}
	return r
}()
