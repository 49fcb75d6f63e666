package ollama

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/servertest"
)

func TestEmbed(t *testing.T) {
	f := serve(t, nil)
	m, err := f.Find(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	ids := func(text string) []int32 {
		t.Helper()
		ids, err := m.Encode(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	once, lamp := ids("Once upon a time"), ids("a lamp")
	var got embedJSON
	status, text := f.Ask(t, "POST", "/api/embed",
		`{"model":"plain","input":["Once upon a time","a lamp"],"dimensions":2,"options":{"temperature":0}}`)
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || got.Model != "plain" ||
		len(got.Embeddings) != 2 || got.Embeddings[1][0] != float32(len(lamp)) ||
		got.Embeddings[0][2] != 0.1 || got.Tokens != len(once)+len(lamp) || got.Total <= 0 || got.Load <= 0 {
		t.Errorf("%d: %s, %v", status, text, err)
	}
	if r := f.Parrot.LastEmbedded(t); !servertest.Same(r.Inputs, [][]int32{once, lamp}) || r.Dimensions != 2 {
		t.Errorf("request: %+v", r)
	}
	if got, want := f.Measured(t)[`ingot_prompt_tokens_total{model="plain:latest"}`],
		float64(len(once)+len(lamp)); got != want {
		t.Errorf("%v prompt tokens are counted, want %v", got, want)
	}
	f.Has(t, "POST", "/api/embed", `{"model":"plain","input":"a lamp","keep_alive":"1m"}`, 200, `"embeddings":[[`)
	if r := f.Parrot.LastEmbedded(t); !servertest.Same(r.Inputs, [][]int32{lamp}) || r.Dimensions != 0 {
		t.Errorf("one text: %+v", r)
	}
	for _, body := range []string{`{"model":"plain","input":"Once upon a time","truncate":true,"options":{"num_ctx":2}}`,
		`{"model":"plain","input":"Once upon a time","truncate":null,"options":{"num_ctx":2}}`,
		`{"model":"plain","input":"Once upon a time","options":{"num_ctx":2}}`} {
		f.Has(t, "POST", "/api/embed", body, 200)
		if r := f.Parrot.LastEmbedded(t); !servertest.Same(r.Inputs, [][]int32{once[:2]}) {
			t.Errorf("%s: %+v", body, r)
		}
	}
	f.Has(t, "POST", "/api/embed", `{"model":"plain","input":"`+strings.Repeat("lamp ", 600)+`"}`, 200)
	if r := f.Parrot.LastEmbedded(t); len(r.Inputs[0]) != m.Context() {
		t.Errorf("%d tokens of an input that is too long", len(r.Inputs[0]))
	}
	for _, n := range []string{"-1", "0", "100000"} { // Ollama returns all of them
		f.Has(t, "POST", "/api/embed", `{"model":"plain","input":"a","dimensions":`+n+`}`, 200)
		if r := f.Parrot.LastEmbedded(t); r.Dimensions != 0 {
			t.Errorf("dimensions %s: %d", n, r.Dimensions)
		}
	}
	for _, body := range []string{`{"model":"plain"}`, `{"model":"plain","input":""}`, `{"model":"plain","input":[]}`,
		`{"model":"plain","input":null}`} {
		f.Has(t, "POST", "/api/embed", body, 200, `"model":"plain"`, `"embeddings":[]`)
	}
	for body, want := range map[string]string{
		`{"model":"plain","input":5}`:       "input: a JSON number 5, want",
		`{"model":"plain","input":["a",5]}`: "input[1]: a JSON number 5, want a string",
		`{"model":"plain","input":"Once upon a time","truncate":false,"options":{"num_ctx":2}}`: "input 0 has 5 tokens, " +
			"at most 2 are allowed: the input length exceeds the context length",
		`{"model":"plain","truncate":false,"input":["a","` + strings.Repeat("lamp ", 600) + `"]}`: "input 1 has",
		`{"model":"plain","input":["` + strings.Repeat(`a","`, 2048) + `a"]}`:                     "at most 2048 are allowed",
		`{"input":"a"}`: "model is required",
	} {
		f.Has(t, "POST", "/api/embed", body, 400, `{"error":"`, want)
	}
	f.Has(t, "POST", "/api/embed", `{"model":"none","input":"a"}`, 404,
		`{"error":"model \"none\" not found, try pulling it first"}`)

	f.Has(t, "POST", "/api/embeddings", `{"model":"plain","prompt":"a lamp"}`, 200, `{"embedding":[`)
	if r := f.Parrot.LastEmbedded(t); !servertest.Same(r.Inputs, [][]int32{lamp}) {
		t.Errorf("older endpoint: %+v", r)
	}
	f.Has(t, "POST", "/api/embeddings", `{"model":"plain","prompt":"Once upon a time","options":{"num_ctx":2}}`, 200)
	if r := f.Parrot.LastEmbedded(t); !servertest.Same(r.Inputs, [][]int32{once[:2]}) {
		t.Errorf("older endpoint, truncated: %+v", r)
	}
	f.Has(t, "POST", "/api/embeddings", `{"model":"plain","prompt":"Once upon a time","truncate":false,`+
		`"options":{"num_ctx":2}}`, 400, "exceeds the context length")
	f.Has(t, "POST", "/api/embeddings", `{"model":"plain","prompt":""}`, 200, `{"embedding":[]}`)
	f.Has(t, "POST", "/api/embeddings", `{"model":"plain","prompt":5}`, 400, "prompt")

	_ = f.Parrot.Close()
	f.Fail = runtime.ErrBusy
	f.Has(t, "POST", "/api/embed", `{"model":"plain","input":"a"}`, 503, "too many requests")
}
