package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
)

// Embed returns vectors with the number of tokens and the first token of each input.
func (p *parrot) Embed(_ context.Context, r runtime.EmbedRequest) (e runtime.Embeddings, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.embedded = append(p.embedded, r)
	for _, ids := range r.Inputs {
		e.Vectors = append(e.Vectors, []float32{float32(len(ids)), float32(ids[0]), 0.1})
		e.Tokens += len(ids)
	}
	return e, p.fail
}

func (p *parrot) lastEmbedded(t *testing.T) runtime.EmbedRequest {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.embedded) == 0 {
		t.Fatal("the model got no request")
	}
	return p.embedded[len(p.embedded)-1]
}

// same compares inputs.
func same(a, b [][]int32) bool { return slices.EqualFunc(a, b, slices.Equal) }

func TestEmbed(t *testing.T) {
	f := serve(t, nil)
	m, err := f.find(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	ids := func(text string) []int32 {
		t.Helper()
		ids, err := m.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	once, lamp := ids("Once upon a time"), ids("a lamp")
	var got embedJSON
	status, text := f.ask(t, "POST", "/api/embed",
		`{"model":"plain","input":["Once upon a time","a lamp"],"dimensions":2,"options":{"temperature":0}}`)
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || got.Model != "plain:latest" ||
		len(got.Embeddings) != 2 || got.Embeddings[1][0] != float32(len(lamp)) ||
		got.Embeddings[0][2] != 0.1 || got.Tokens != len(once)+len(lamp) || got.Total <= 0 || got.Load <= 0 {
		t.Errorf("%d: %s, %v", status, text, err)
	}
	if r := f.parrot.lastEmbedded(t); !same(r.Inputs, [][]int32{once, lamp}) || r.Dimensions != 2 {
		t.Errorf("request: %+v", r)
	}
	if got, want := f.measured(t)[`ingot_prompt_tokens_total{model="plain:latest"}`],
		float64(len(once)+len(lamp)); got != want {
		t.Errorf("%v prompt tokens are counted, want %v", got, want)
	}
	f.has(t, "POST", "/api/embed", `{"model":"plain","input":"a lamp","keep_alive":"1m"}`, 200, `"embeddings":[[`)
	if r := f.parrot.lastEmbedded(t); !same(r.Inputs, [][]int32{lamp}) || r.Dimensions != 0 {
		t.Errorf("one text: %+v", r)
	}
	f.has(t, "POST", "/api/embed", `{"model":"plain","input":"Once upon a time","truncate":true,"options":{"num_ctx":2}}`,
		200)
	if r := f.parrot.lastEmbedded(t); !same(r.Inputs, [][]int32{once[:2]}) {
		t.Errorf("truncated: %+v", r)
	}
	for _, body := range []string{`{"model":"plain"}`, `{"model":"plain","input":""}`, `{"model":"plain","input":[]}`,
		`{"model":"plain","input":null}`} {
		f.has(t, "POST", "/api/embed", body, 200, `"model":"plain:latest"`, `"embeddings":[]`)
	}
	for body, want := range map[string]string{
		`{"model":"plain","input":5}`:       "input must be",
		`{"model":"plain","input":["a",5]}`: "input must be",
		`{"model":"plain","input":"Once upon a time","options":{"num_ctx":2}}`: "input 0 has 5 tokens, at most 2 " +
			"are allowed",
		`{"model":"plain","input":["a","` + strings.Repeat("lamp ", 600) + `"]}`: "input 1 has",
		`{"model":"plain","input":"a","dimensions":-1}`:                          "dimensions is -1",
		`{"model":"plain","input":"a","dimensions":100000}`: "dimensions is 100000, must be " +
			"between 1 and ",
		`{"model":"plain","input":["` + strings.Repeat(`a","`, maxInputs) + `a"]}`: "at most 2048 are allowed",
		`{"input":"a"}`: "the model is missing",
	} {
		f.has(t, "POST", "/api/embed", body, 400, `{"error":"`, want)
	}
	f.has(t, "POST", "/api/embed", `{"model":"none","input":"a"}`, 404, "ingot pull")

	f.has(t, "POST", "/api/embeddings", `{"model":"plain","prompt":"a lamp"}`, 200, `{"embedding":[`)
	if r := f.parrot.lastEmbedded(t); !same(r.Inputs, [][]int32{lamp}) {
		t.Errorf("older endpoint: %+v", r)
	}
	f.has(t, "POST", "/api/embeddings", `{"model":"plain","prompt":""}`, 200, `{"embedding":[]}`)
	f.has(t, "POST", "/api/embeddings", `{"model":"plain","prompt":5}`, 400, "prompt")

	_ = f.parrot.Close()
	f.fail = runtime.ErrBusy
	f.has(t, "POST", "/api/embed", `{"model":"plain","input":"a"}`, 503, "too many requests")
}

func TestOpenAIEmbed(t *testing.T) {
	f := serve(t, nil)
	var got struct {
		Object string
		Data   []struct {
			Object    string
			Index     int
			Embedding json.RawMessage
		}
		Model string
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
			TotalTokens  int `json:"total_tokens"`
		}
	}
	ask := func(body string) {
		t.Helper()
		status, text := f.ask(t, "POST", "/v1/embeddings", body)
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 {
			t.Fatalf("%s: %d: %s, %v", body, status, text, err)
		}
	}
	ask(`{"model":"plain","input":[[5,6,7],[8]],"user":"x"}`)
	if got.Object != "list" || got.Model != "plain:latest" || got.Usage.PromptTokens != 4 || got.Usage.TotalTokens != 4 ||
		len(got.Data) != 2 ||
		got.Data[1].Index != 1 || got.Data[1].Object != "embedding" || string(got.Data[0].Embedding) != "[3,5,0.1]" {
		t.Errorf("%+v", got)
	}
	ask(`{"model":"plain","input":[5,6],"encoding_format":"base64","dimensions":3}`)
	var text string
	if err := json.Unmarshal(got.Data[0].Embedding, &text); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != 12 || math.Float32frombits(binary.LittleEndian.Uint32(b[8:])) != 0.1 {
		t.Errorf("%s: %v, %v", text, b, err)
	}
	if r := f.parrot.lastEmbedded(t); !same(r.Inputs, [][]int32{{5, 6}}) || r.Dimensions != 3 {
		t.Errorf("request: %+v", r)
	}
	ask(`{"model":"plain","input":["a lamp"],"encoding_format":"float"}`)
	ask(`{"model":"plain","input":"a lamp"}`)
	for body, want := range map[string]string{
		`{"model":"plain"}`:                                              "input is missing",
		`{"model":"plain","input":[]}`:                                   "input is missing",
		`{"model":"plain","input":""}`:                                   "input is missing",
		`{"model":"plain","input":[[]]}`:                                 "input 0 is empty",
		`{"model":"plain","input":[1.5]}`:                                "input must be",
		`{"model":"plain","input":"a","encoding_format":"int8"}`:         "must be float or base64",
		`{"model":"plain","input":"a","dimensions":0}`:                   "dimensions is 0",
		`{"model":"plain","input":[` + strings.Repeat("5,", 600) + `5]}`: "input 0 has 601 tokens, at most 512 are allowed",
	} {
		f.has(t, "POST", "/v1/embeddings", body, 400, want)
	}
}
