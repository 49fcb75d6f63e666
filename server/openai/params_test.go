package openai

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/modelfile/parameters/parameterstest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/params"
)

// Requests have every parameter that the table names for this API, and each becomes an option.
func TestRequestsHaveEveryParameter(t *testing.T) {
	requests := []any{chatCompletion{}, textCompletion{}, responseRequest{}}
	if missing := parameterstest.Undeclared(parameters.OpenAI, requests); missing != nil {
		t.Errorf("no request has %q: add members to sampling in params.go, or to one request", missing)
	}
	var q sampling
	body := `{"temperature":0.1,"top_p":0.2,"presence_penalty":0.3,"frequency_penalty":0.4,"seed":5,"stop":["","x"],
		"logit_bias":{"6":1},"top_k":7,"min_p":0.8,"repetition_penalty":1.9,"ignore_eos":true}`
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Fatal(err)
	}
	o, err := q.options(new(11), "max_tokens")
	want := params.Options{
		Set: parameters.Set{
			Shared: parameters.Shared{
				Temperature: new(0.1), TopP: new(0.2), PresencePenalty: new(0.3), FrequencyPenalty: new(0.4),
				Seed: new(int64(5)), Stop: parameters.Texts{"x"}, TopK: new(7), MinP: new(0.8),
			},
			RepeatPenalty: new(1.9), NumPredict: new(11),
		},
		Extensions: params.Extensions{IgnoreEOS: true, LogitBias: map[int32]float64{6: 1}},
	}
	if d := cmp.Diff(want, o); err != nil || d != "" {
		t.Error(err, d)
	}
	q.Stop = parameters.Texts{""}
	if o, err := q.options(nil, ""); err != nil || o.Stop != nil || o.NumPredict != nil {
		t.Errorf("only an empty stop text: %+v, %v", o, err)
	}
}

// A key, or a retention, pins the whole prompt.
func TestPromptCacheKey(t *testing.T) {
	f := serve(t, nil)
	for fields, want := range map[string]time.Duration{
		`"seed":1`:                       0,
		`"prompt_cache_key":"k"`:         5 * time.Minute,
		`"prompt_cache_key":null`:        0,
		`"prompt_cache_retention":"24h"`: 24 * time.Hour,
		`"prompt_cache_retention":"1w"`:  0,
		`"prompt_cache_key":"k","prompt_cache_retention":"in_memory"`: 5 * time.Minute,
	} {
		for path, body := range map[string]string{
			"/v1/completions":      `"prompt":"Once"`,
			"/v1/chat/completions": `"messages":[{"role":"user","content":"Once"}]`,
			"/v1/responses":        `"input":"Once"`,
		} {
			f.Has(t, "POST", path, `{"model":"plain",`+body+`,`+fields+`}`, 200)
			r := f.Parrot.Last(t)
			if want == 0 && len(r.Pins) == 0 {
				continue
			}
			if len(r.Pins) != 1 || r.Pins[0] != (runtime.Pin{Tokens: len(r.Prompt), TTL: want}) {
				t.Errorf("%s with %s: %+v", path, fields, r.Pins)
			}
		}
	}
}
