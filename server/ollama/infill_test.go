package ollama

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/server/servertest"
)

// A suffix without a place in the template makes a prompt with the vocabulary's tokens for a gap.
func TestSuffix(t *testing.T) {
	f := serve(t, nil)
	servertest.CreateInfill(t, f.Options().Store, "coder")
	m, err := f.Find(t.Context(), "coder")
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.Encode(t.Context(), "<|fim_prefix|>Once<|fim_suffix|> a time<|fim_middle|>")
	if err != nil {
		t.Fatal(err)
	}
	end, ok := m.Tokenizer().ID("<|fim_prefix|>")
	for _, more := range []string{"", `,"system":"brief"`, `,"stream":false,"think":true`, `,"template":"{{ .Prompt }}"`} {
		f.Has(t, "POST", "/api/generate", `{"model":"coder","prompt":"Once","suffix":" a time"`+more+"}", 200, "world")
		if r := f.Parrot.Last(t); !slices.Equal(r.Prompt, want) || !ok || !slices.Contains(r.EndTokens, end) ||
			!r.Continues {
			t.Errorf("%s: %+v, want the prompt %v", more, r, want)
		}
	}
	f.Has(t, "POST", "/api/generate", `{"model":"coder","prompt":"Once","suffix":"x","template":"{{ .Suffix }}"}`, 200)
	if r := f.Parrot.Last(t); slices.Contains(r.Prompt, end) || len(r.EndTokens) > 0 {
		t.Errorf("a template with a place for the suffix: %+v", r)
	}
	long := strings.Repeat("Once upon a time ", 30)
	f.Has(t, "POST", "/api/generate", `{"model":"coder","prompt":"`+long+`","suffix":"`+long+`","options":{"num_ctx":80}}`,
		200)
	r := f.Parrot.Last(t)
	after, _ := m.Tokenizer().ID("<|fim_suffix|>")
	middle, _ := m.Tokenizer().ID("<|fim_middle|>")
	if i := slices.Index(r.Prompt, after); len(r.Prompt) != 40 || r.Prompt[1] != end || r.Prompt[39] != middle || i < 20 {
		t.Errorf("a prompt that does not fit: %v", r.Prompt)
	}
	noFit := `{"model":"coder","prompt":"` + long + `","suffix":"y","truncate":false,"options":{"num_ctx":80}}`
	for body, want := range map[string]string{
		noFit: "context length",
		`{"model":"plain","prompt":"x","suffix":"y"}`:                   "does not support insert",
		`{"model":"coder","prompt":"x","suffix":"y","images":["AAAA"]}`: "images: ",
		`{"model":"coder","prompt":"x","suffix":"y","context":[1]}`:     "context: ",
		`{"model":"coder","prompt":"x","suffix":"y","raw":true}`:        "raw excludes",
	} {
		f.Has(t, "POST", "/api/generate", body, 400, want)
	}
}
