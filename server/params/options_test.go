package params

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ingotml/ingot/modelfile/parameters"
	"github.com/ingotml/ingot/modelfile/parameters/parameterstest"
	"github.com/ingotml/ingot/runtime"
)

// Options have every parameter of requests, and each reaches the request.
func TestOptionsHaveEveryParameter(t *testing.T) {
	if missing := parameterstest.Undeclared(parameters.Ollama, []any{Options{}}); missing != nil {
		t.Errorf("options do not have %q: add members to Options in options.go", missing)
	}
	var o Options
	body := `{"temperature":0.1,"top_k":2,"top_p":0.3,"min_p":0.4,"repeat_penalty":1.5,"presence_penalty":0.6,
		"frequency_penalty":0.7,"repeat_last_n":8,"seed":9,"num_predict":10,"num_ctx":5,"num_keep":6,"typical_p":0.2,
		"draft_num_predict":2,"stop":"x","ignore_eos":true,
		"draft":3,"logit_bias":{"4":1},"deadline_ms":1500,"priority":-2}`
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		t.Fatal(err)
	}
	r := runtime.Request{Prompt: []int32{1, 2}}
	if err := o.Apply(runtime.StandardDefaults(), 100, &r); err != nil {
		t.Fatal(err)
	}
	want := runtime.Request{
		Prompt: []int32{1, 2}, MaxTokens: 3, Stop: []string{"x"}, IgnoreEOS: true,
		Draft:    runtime.Draft{Mode: runtime.DraftFixed, N: 3},
		Deadline: 1500 * time.Millisecond, Priority: -2,
		Sampling: runtime.Sampling{
			Temperature: 0.1, TopK: 2, TypicalP: 0.2, TopP: 0.3, MinP: 0.4, RepeatPenalty: 1.5, PresencePenalty: 0.6,
			FrequencyPenalty: 0.7, RepeatLastN: 8, Seed: new(int64(9)), LogitBias: map[int32]float64{4: 1},
		},
	}
	if d := cmp.Diff(want, r); d != "" {
		t.Error(d)
	}
}
