package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/runtime"
)

// sampling are the parameters that the endpoints of OpenAI's API share. What a request leaves out is as the model's image has it.
type sampling struct {
	Temperature      *float64          `json:"temperature"`
	TopP             *float64          `json:"top_p"`
	PresencePenalty  *float64          `json:"presence_penalty"`
	FrequencyPenalty *float64          `json:"frequency_penalty"`
	Seed             *int64            `json:"seed"`
	Stop             texts             `json:"stop"`
	LogitBias        map[int32]float64 `json:"logit_bias"`

	// As other servers of this API have them.
	TopK              *int     `json:"top_k"`
	MinP              *float64 `json:"min_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
	IgnoreEOS         bool     `json:"ignore_eos"`
}

// options are the parameters by our names. most is how many tokens may come, nil: as many as there is room for.
func (p sampling) options(most *int, name string) (options, error) {
	o := options{
		Temperature: p.Temperature, TopP: p.TopP, TopK: p.TopK, MinP: p.MinP, RepeatPenalty: p.RepetitionPenalty,
		PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty, Seed: p.Seed, LogitBias: p.LogitBias, IgnoreEOS: p.IgnoreEOS,
	}
	for _, s := range p.Stop {
		if s != "" {
			o.Stop = append(o.Stop, s)
		}
	}
	switch {
	case most != nil && *most == 0:
		return o, badParam(name, "an answer has at least one token")
	case most != nil:
		o.NumPredict = most
	}
	if t := p.Temperature; t != nil && *t < 0 {
		return o, badParam("temperature", "it is negative")
	}
	if t := p.TopP; t != nil && (*t < 0 || *t > 1) {
		return o, badParam("top_p", "it is not between 0 and 1")
	}
	return o, nil
}

// seeded gives one of several answers to a prompt a seed of its own, where the request has one: else all would be the same.
func seeded(r *runtime.Request, choice int) {
	if seed := r.Sampling.Seed; seed != nil && choice > 0 {
		r.Sampling.Seed = new(*seed + int64(choice))
	}
}

// checkTop checks a number of likeliest tokens.
func checkTop(param string, n int) error {
	if n < 0 || n > runtime.MostTopLogProbs {
		return badParam(param, "it is from 0 to %d", runtime.MostTopLogProbs)
	}
	return nil
}

// maxChoices bounds the answers of a request.
const maxChoices = 128

func choices(n *int) (int, error) {
	switch {
	case n == nil:
		return 1, nil
	case *n < 1 || *n > maxChoices:
		return 0, badParam("n", "it is from 1 to %d", maxChoices)
	}
	return *n, nil
}

// unsupported is a parameter that would change the answer, and that nothing is done about. It has to be left out, or say nothing.
type unsupported struct{ value json.RawMessage }

func (u *unsupported) UnmarshalJSON(b []byte) error {
	u.value = bytes.Clone(b)
	return nil
}

// silent are the values that say nothing, whatever the parameter.
var silent = []string{"", "null", "false", "0", `""`, "[]", "{}", `"none"`}

// check is an error unless the parameter is left out, says nothing, or has a value that is what happens anyway.
func (u unsupported) check(name string, anyway ...string) error {
	var b bytes.Buffer
	if len(u.value) > 0 {
		if err := json.Compact(&b, u.value); err != nil {
			return badParam(name, "%v", err)
		}
	}
	if v := b.String(); slices.Contains(silent, v) || slices.Contains(anyway, v) {
		return nil
	}
	return badParam(name, "this parameter is not supported")
}

// responseFormat is what an answer has to look like.
type responseFormat struct {
	format
	text json.RawMessage
}

func (f *responseFormat) UnmarshalJSON(b []byte) error {
	var v *struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"` // as in responses
		JSON   struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("response_format: %w", err)
	}
	if v == nil {
		return nil
	}
	f.text = bytes.Clone(b)
	switch v.Type {
	case "text", "":
	case "json_object":
		f.Kind = runtime.FormatJSON
	case "json_schema":
		schema := v.Schema
		if schema == nil {
			schema = v.JSON.Schema
		}
		if !bytes.HasPrefix(bytes.TrimSpace(schema), []byte("{")) {
			return fmt.Errorf("response_format: json_schema has no schema")
		}
		f.Kind, f.Source = runtime.FormatSchema, string(schema)
	default:
		return fmt.Errorf("response_format: the type %s is not supported, only text, json_object and json_schema", clip(v.Type))
	}
	return nil
}

// effort is how much a model is to think.
type effort struct{ thinking }

func (e *effort) UnmarshalJSON(b []byte) error {
	var text *string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf("reasoning effort: %w", err)
	}
	if text == nil {
		return nil
	}
	switch *text {
	case "none":
		e.on = new(bool)
		return nil
	case "minimal":
		e.level = "low"
	case "low", "medium", "high":
		e.level = *text
	case "xhigh", "max":
		e.level = "high"
	default:
		return fmt.Errorf("the reasoning effort is none, minimal, low, medium, high or xhigh")
	}
	e.on = new(true)
	return nil
}
