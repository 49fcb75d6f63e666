package openai

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/servertest"
)

// streamed returns the choices that the chunks of a stream add up to.
func streamed(t *testing.T, text string, n int) []textChoiceJSON {
	t.Helper()
	choices := make([]textChoiceJSON, n)
	for _, e := range servertest.Events(t, text) {
		if e.Data == "[DONE]" {
			return choices
		}
		for _, c := range servertest.Decode[textCompletionJSON](t, e.Data).Choices {
			sum := &choices[c.Index]
			sum.Index, sum.Text = c.Index, sum.Text+c.Text
			if c.Finish != nil {
				sum.Finish = c.Finish
			}
			if sum.LogProbs == nil {
				sum.LogProbs = c.LogProbs
			} else {
				sum.LogProbs.append(c.LogProbs)
			}
		}
	}
	t.Fatalf("the stream has no end: %s", text)
	return nil
}

// A prompt is repeated with the logprobs of its tokens, whole and streamed, for each choice of each prompt. The lists
// are parallel, the first token has no logprob, and offsets are in characters.
func TestEchoLogProbs(t *testing.T) {
	f := serve(t, nil)
	m, err := f.Find(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		body    string
		prompts []string // as they are repeated
		said    string   // after them
	}{
		"text":           {`"prompt":"Once upon","logprobs":1`, []string{"Once upon"}, "Hello world"},
		"two choices":    {`"prompt":"Once upon","logprobs":1,"n":2`, []string{"Once upon", "Once upon"}, "Hello world"},
		"two prompts":    {`"prompt":["Once","x"],"logprobs":0`, []string{"Once", "x"}, "Hello world"},
		"characters":     {`"prompt":"a€b 🦙é","logprobs":2,"max_tokens":0`, []string{"a€b 🦙é"}, ""},
		"special token":  {`"prompt":"a<|eot_id|>b","logprobs":1`, []string{"a<|eot_id|>b"}, "Hello world"},
		"one token":      {`"prompt":"x","logprobs":1,"max_tokens":0`, []string{"x"}, ""},
		"ids":            {`"prompt":[[82,81,80],[82]],"logprobs":1,"max_tokens":0`, []string{"srq", "s"}, ""},
		"no logprobs":    {`"prompt":"Once","max_tokens":0`, []string{"Once"}, ""},
		"nothing, twice": {`"prompt":"Once","max_tokens":0,"n":2,"logprobs":5`, []string{"Once", "Once"}, ""},
	} {
		body := `{"model":"plain","echo":true,` + c.body
		status, text := f.Ask(t, "POST", "/v1/completions", body+"}")
		got := servertest.Decode[textCompletionJSON](t, text)
		if status != 200 || len(got.Choices) != len(c.prompts) {
			t.Fatalf("%s: %d: %s", name, status, text)
		}
		finish, generated := "stop", 2
		if c.said == "" {
			finish, generated = "length", 0
		}
		if got.Usage.Completion != generated*len(c.prompts) || got.Usage.Prompt == 0 ||
			got.Usage.Total != got.Usage.Prompt+got.Usage.Completion {
			t.Errorf("%s: usage %+v", name, got.Usage)
		}
		for i, choice := range got.Choices {
			if choice.Text != c.prompts[i]+c.said || *choice.Finish != finish {
				t.Errorf("%s: choice %d: %+v", name, i, choice)
			}
			if strings.Contains(c.body, `"logprobs"`) {
				checkTextLogProbs(t, name, choice.LogProbs, c.prompts[i], generated)
			} else if choice.LogProbs != nil {
				t.Errorf("%s: %+v", name, choice.LogProbs)
			}
		}
		_, text = f.Ask(t, "POST", "/v1/completions", body+`,"stream":true}`)
		if chunks := streamed(t, text, len(c.prompts)); !reflect.DeepEqual(chunks, got.Choices) {
			t.Errorf("%s: streamed %+v, whole %+v", name, chunks, got.Choices)
		}
	}
	ids, err := m.Encode(t.Context(), "a€b")
	if err != nil {
		t.Fatal(err)
	}
	_, text := f.Ask(t, "POST", "/v1/completions",
		`{"model":"plain","echo":true,"logprobs":1,"max_tokens":0,"prompt":"a€b"}`)
	l := servertest.Decode[textCompletionJSON](t, text).Choices[0].LogProbs
	if want := []int{0, 0, 1, 1, 1, 2}; len(ids) != 6 || !slices.Equal(l.Offsets, want) ||
		!slices.Equal(l.Tokens, []string{"<|begin_of_text|>", "a", `bytes:\xe2`, `bytes:\x82`, `bytes:\xac`, "b"}) {
		t.Errorf("tokens %q at %v, want %v", l.Tokens, l.Offsets, want)
	}

	// The token that ends the text is the last one: evaluation harnesses drop one generated token.
	f.Parrot.End = &runtime.LogProb{ID: 1023, LogProb: -0.25}
	for _, body := range []string{`{"model":"plain","logprobs":1,"prompt":"a"`,
		`{"model":"plain","echo":true,"logprobs":1,"prompt":"a"`} {
		_, text := f.Ask(t, "POST", "/v1/completions", body+"}")
		l := servertest.Decode[textCompletionJSON](t, text).Choices[0].LogProbs
		last := len(l.Tokens) - 1
		_, text = f.Ask(t, "POST", "/v1/completions", body+`,"stream":true}`)
		if l.Tokens[last] != "<|end_of_text|>" || *l.LogProbs[last] != -0.25 || l.Tokens[last-1] == l.Tokens[last] ||
			!reflect.DeepEqual(streamed(t, text, 1)[0].LogProbs, l) {
			t.Errorf("%s: %+v\n%s", body, l, text)
		}
	}
	f.Parrot.End = nil

	list := strings.TrimSuffix(strings.Repeat("[5,6,7,8,9,10,11,12],", 128), ",")
	for top, want := range map[int]int{100: 200, 1024: 400} {
		f.Has(t, "POST", "/v1/completions", fmt.Sprintf(
			`{"model":"plain","echo":true,"max_tokens":0,"logprobs":%d,"prompt":[%s]}`, top, list), want)
	}
	long := strings.TrimSuffix(strings.Repeat("5,", 500), ",")
	list = strings.TrimSuffix(strings.Repeat("["+long+"],", 25), ",")
	if 25*500*101 <= limits.PromptLogProbs {
		t.Fatal("the request is within the limit")
	}
	f.Has(t, "POST", "/v1/completions",
		`{"model":"plain","echo":true,"max_tokens":0,"logprobs":100,"prompt":[`+list+`]}`, 400, `"param":"logprobs"`,
		"at most 1048576", "send fewer prompts")
	f.Has(t, "POST", "/v1/completions", `{"model":"plain","max_tokens":0,"logprobs":100,"prompt":[`+list+`]}`, 200)
}

// checkTextLogProbs compares logprobs with those that a parrot gives a prompt and the tokens after it.
func checkTextLogProbs(t *testing.T, name string, l *textLogProbs, prompt string, generated int) {
	t.Helper()
	n := len(l.Tokens)
	if len(l.LogProbs) != n || len(l.Top) != n || len(l.Offsets) != n || n <= generated {
		t.Fatalf("%s: %+v", name, l)
	}
	if l.LogProbs[0] != nil || l.Top[0] != nil || l.Offsets[0] != 0 {
		t.Errorf("%s: the first token has a logprob: %+v", name, l)
	}
	for i := 1; i < n; i++ {
		want := -float32(i)
		if i >= n-generated {
			want = -1
		}
		if l.LogProbs[i] == nil || *l.LogProbs[i] != want || l.Top[i][l.Tokens[i]] != want || len(l.Top[i]) != 2 {
			t.Errorf("%s: token %d: %v, %v, want %v", name, i, l.LogProbs[i], l.Top[i], want)
		}
	}
	characters := []rune(prompt)
	if !slices.IsSorted(l.Offsets) || l.Offsets[n-1-generated] >= len(characters) ||
		generated > 0 && l.Offsets[n-generated] != len(characters) {
		t.Errorf("%s: offsets %v in %q", name, l.Offsets, prompt)
	}
	for i := range n - generated {
		if token := l.Tokens[i]; !strings.HasPrefix(token, "bytes:") && token != "<|begin_of_text|>" &&
			!strings.HasPrefix(string(characters[l.Offsets[i]:]), token) {
			t.Errorf("%s: token %q is not at %d of %q", name, token, l.Offsets[i], prompt)
		}
	}
}

// A prompt may fill the context if nothing is generated.
func TestMaxTokensZero(t *testing.T) {
	f := serve(t, nil)
	ids := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("5,", n), ",") + "]" }
	for _, c := range []struct {
		n, most, status int
	}{{512, 0, 200}, {513, 0, 400}, {512, 1, 400}, {511, 1, 200}} {
		f.Has(t, "POST", "/v1/completions", fmt.Sprintf(`{"model":"plain","prompt":%s,"max_tokens":%d}`, ids(c.n), c.most),
			c.status)
	}
	f.Has(t, "POST", "/v1/completions", `{"model":"plain","prompt":"Once","max_tokens":0}`, 200, `"text":""`,
		`"finish_reason":"length"`, `"completion_tokens":0`)
	if r := f.Parrot.Last(t); !r.PromptOnly || r.PromptLogProbs {
		t.Errorf("%+v", r)
	}
	f.Has(t, "POST", "/v1/chat/completions", hi+`,"max_tokens":0}`, 400, `"param":"max_tokens"`)
}

// A suffix makes a prompt with the vocabulary's tokens for a gap, from text or token ids, and the tokens that begin
// another part end the completion.
func TestSuffix(t *testing.T) {
	f := serve(t, nil)
	servertest.CreateInfill(t, f.Options().Store, "coder")
	m, err := f.Find(t.Context(), "coder")
	if err != nil {
		t.Fatal(err)
	}
	ids := func(text string) []int32 {
		out, err := m.Tokenizer().Encode(t.Context(), text, false)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	whole, err := m.Encode(t.Context(), "<|fim_prefix|>Once<|fim_suffix|> a time<|fim_middle|>")
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.ReplaceAll(fmt.Sprint(ids("Once")), " ", ",")
	for _, prompt := range []string{`"Once"`, `["Once"]`, listed, "[" + listed + "]"} {
		f.Has(t, "POST", "/v1/completions", `{"model":"coder","prompt":`+prompt+`,"suffix":" a time","echo":true}`, 200,
			`"text":"OnceHello world"`)
		r := f.Parrot.Last(t)
		if !slices.Equal(r.Prompt, whole) || !slices.Contains(r.EndTokens, ids("<|fim_suffix|>")[0]) || !r.Continues {
			t.Errorf("%s: %+v, want the prompt %v", prompt, r, whole)
		}
	}
	_, text := f.Ask(t, "POST", "/v1/completions",
		`{"model":"coder","prompt":["Once","Twice"],"n":2,"suffix":"y","stream":true,"logprobs":1}`)
	if got := streamed(t, text, 4); got[3].Text != "Hello world" || len(got[3].LogProbs.Tokens) != 2 {
		t.Errorf("%+v", got)
	}
	for _, none := range []string{"", `,"suffix":null`, `,"suffix":""`} {
		f.Has(t, "POST", "/v1/completions", `{"model":"coder","prompt":"Once"`+none+"}", 200)
		if r := f.Parrot.Last(t); len(r.EndTokens) > 0 || len(r.Prompt) > 2 {
			t.Errorf("%s: %+v", none, r)
		}
	}
	f.Has(t, "POST", "/v1/completions", `{"model":"coder","prompt":"x","suffix":"`+strings.Repeat("a ", 600)+`"}`, 400,
		"context_length_exceeded")
	f.Has(t, "POST", "/v1/completions", `{"model":"plain","prompt":"x","suffix":"y"}`, 400, `"param":"suffix"`,
		"use a code model")
}
