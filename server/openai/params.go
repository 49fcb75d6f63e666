package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// sampling are the common parameters of OpenAI's API. The default of each is that of the model's image.
type sampling struct {
	parameters.Shared
	params.Extensions
	RepetitionPenalty *float64 `json:"repetition_penalty"` // an extension of other servers

	// A key groups prompts that begin alike. Requests with one pin their prompt in the prefix cache.
	CacheKey       string `json:"prompt_cache_key"`
	CacheRetention string `json:"prompt_cache_retention"` // in_memory (the default) or 24h
}

// pinTTL returns how long the prefix cache keeps the prompt in preference to others. It is a hint: a retention that
// this server does not know has no effect.
func (p sampling) pinTTL() time.Duration {
	switch {
	case p.CacheRetention == "24h":
		return 24 * time.Hour
	case p.CacheKey == "":
		return 0
	}
	return defaultPin
}

// defaultPin is how long a prompt with a key stays pinned after its last use.
const defaultPin = 5 * time.Minute

// options converts the parameters. most is the maximum number of tokens, or nil for no limit.
func (p sampling) options(most *int, name string) (params.Options, error) {
	o := params.Options{Extensions: p.Extensions,
		Set: parameters.Set{Shared: p.Shared, RepeatPenalty: p.RepetitionPenalty, NumPredict: most}}
	o.Stop = slices.DeleteFunc(slices.Clone(o.Stop), func(text string) bool { return text == "" })
	if len(o.Stop) == 0 {
		o.Stop = nil // the image's
	}
	o.Pin = p.pinTTL()
	if most != nil && *most == 0 {
		return o, wire.BadParam(name, "must be at least 1")
	}
	if t := p.Temperature; t != nil && *t < 0 {
		return o, wire.BadParam("temperature", "must not be negative")
	}
	if t := p.TopP; t != nil && (*t < 0 || *t > 1) {
		return o, wire.BadParam("top_p", "must be between 0 and 1")
	}
	return o, nil
}

// setSeed gives each choice of a prompt its own seed if the request has one. Otherwise all choices would be equal.
func setSeed(r *runtime.Request, choice int) {
	if seed := r.Sampling.Seed; seed != nil && choice > 0 {
		r.Sampling.Seed = new(*seed + int64(choice))
	}
}

// checkTop checks a number of top logprobs.
func checkTop(param string, n int) error {
	if n < 0 || n > runtime.MostTopLogProbs {
		return wire.BadParam(param, "must be between 0 and %d", runtime.MostTopLogProbs)
	}
	return nil
}

// maxChoices is the maximum number of choices per request.
const maxChoices = 128

func choices(n *int) (int, error) {
	switch {
	case n == nil:
		return 1, nil
	case *n < 1 || *n > maxChoices:
		return 0, wire.BadParam("n", "must be between 1 and %d", maxChoices)
	}
	return *n, nil
}

// unsupported is a parameter that would change the response and is not implemented. It must be absent or have no
// effect.
type unsupported struct{ value json.RawMessage }

func (u *unsupported) UnmarshalJSON(b []byte) error {
	u.value = bytes.Clone(b)
	return nil
}

// noEffect are values without effect for any parameter.
var noEffect = []string{"", "null", "false", "0", `""`, "[]", "{}", `"none"`}

// check returns an error unless the parameter is absent, has no effect, or has one of the default values.
func (u unsupported) check(name string, defaults ...string) error {
	var b bytes.Buffer
	if len(u.value) > 0 {
		if err := json.Compact(&b, u.value); err != nil {
			return wire.BadParam(name, "%v", err)
		}
	}
	v := b.String()
	if whole, ok := jsonfit.Whole(v); ok {
		v = whole
	}
	if slices.Contains(noEffect, v) || slices.Contains(defaults, v) {
		return nil
	}
	return wire.BadParam(name, "this parameter is not supported")
}

// responseFormat is the output format.
type responseFormat struct {
	params.Format
	text json.RawMessage
}

func (f *responseFormat) UnmarshalJSON(b []byte) error {
	var v *struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"schema"` // as in the responses API
		JSON   struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if err := jsonfit.Unmarshal(b, &v); err != nil {
		return err
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
			return jsonfit.Errorf("json_schema needs a schema")
		}
		f.Kind, f.Source = runtime.FormatSchema, string(schema)
	case string(runtime.FormatTags): // as other servers have it
		f.Kind, f.Source = runtime.FormatTags, string(b)
	default:
		const want = "text, json_object, json_schema or structural_tag"
		return jsonfit.Errorf("type %s is not supported: use %s", wire.Clip(v.Type), want)
	}
	return nil
}
