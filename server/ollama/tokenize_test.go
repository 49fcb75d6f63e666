package ollama

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server/servertest"
)

func TestTokenize(t *testing.T) {
	f := serve(t, nil)
	type response struct {
		Count   int
		Context int `json:"max_model_len"`
		Tokens  []int32
		Texts   []string `json:"token_strs"`
	}
	get := func(body string) response {
		t.Helper()
		status, text := f.Ask(t, "POST", "/v1/tokenize", body)
		if status != 200 {
			t.Fatalf("%s: %d: %s", body, status, text)
		}
		return servertest.Decode[response](t, text)
	}
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"Once upon","stream":false}`, 200)
	whole := get(`{"model":"plain","prompt":"Once upon","return_token_strs":true}`)
	if prompt := f.Parrot.Last(t).Prompt; !slices.Equal(whole.Tokens, prompt) || whole.Count != len(prompt) ||
		whole.Context != 512 || len(whole.Texts) != len(prompt) {
		t.Errorf("%+v; a completion's prompt is %v", whole, prompt)
	}
	if got := get(`{"model":"plain","prompt":"Once upon","add_special_tokens":false}`); !slices.Equal(got.Tokens,
		whole.Tokens[1:]) || got.Texts != nil {
		t.Errorf("without special tokens: %+v, with them %v", got, whole.Tokens)
	}
	if got := get(`{"model":"plain","prompt":"","add_special_tokens":false}`); got.Tokens == nil || got.Count != 0 {
		t.Errorf("nothing: %+v", got)
	}

	ids := strings.ReplaceAll(fmt.Sprint(whole.Tokens), " ", ",")
	_, text := f.Ask(t, "POST", "/v1/detokenize", `{"model":"plain","tokens":`+ids+`}`)
	if got := servertest.Decode[map[string]string](t, text); !strings.HasSuffix(got["prompt"], "Once upon") ||
		got["prompt"] == "Once upon" {
		t.Errorf("with special tokens: %s", text)
	}
	f.Has(t, "POST", "/v1/detokenize", `{"model":"plain","skip_special_tokens":true,"tokens":`+ids+`}`, 200,
		`{"prompt":"Once upon"}`)

	const chat = `"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f"}}],` +
		`"think":true`
	f.Has(t, "POST", "/api/chat", `{"model":"talk",`+chat+`,"stream":false}`, 200)
	if got := get(`{"model":"talk",` + chat + `}`); !slices.Equal(got.Tokens, f.Parrot.Last(t).Prompt) {
		t.Errorf("conversation: %v, prompt %v", got.Tokens, f.Parrot.Last(t).Prompt)
	}
	if loads := len(f.Loads); loads != 2 {
		t.Errorf("%d models were loaded, want only those that generated", loads)
	}

	for body, want := range map[string]string{
		`{"model":"plain"}`:                            "either prompt or messages",
		`{"model":"plain","prompt":"x","messages":[]}`: "either prompt or messages",
		`{"prompt":"x"}`:                               "the model is missing",
		`{"model":"plain","prompt":7}`:                 "prompt",
	} {
		f.Has(t, "POST", "/v1/tokenize", body, 400, want)
	}
	for body, want := range map[string]string{
		`{"model":"plain","tokens":[-1]}`:      "tokens[0] is -1",
		`{"model":"plain","tokens":[5,99999]}`: "tokens[1] is 99999",
		`{"model":"plain","tokens":"x"}`:       "tokens",
	} {
		f.Has(t, "POST", "/v1/detokenize", body, 400, want)
	}
	f.Has(t, "POST", "/v1/tokenize", `{"model":"none","prompt":"x"}`, 404, `"error":"`, "ingot pull")
}
