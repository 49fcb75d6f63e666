package ollama

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

// message returns a message in JSON: a letter for its role, and a text. "C" calls a tool.
func message(spec string) string {
	role, text, _ := strings.Cut(spec, " ")
	switch role {
	case "s":
		return fmt.Sprintf(`{"role":"system","content":%q}`, text)
	case "u":
		return fmt.Sprintf(`{"role":"user","content":%q}`, text)
	case "t":
		return fmt.Sprintf(`{"role":"tool","tool_name":"f","content":%q}`, text)
	case "C":
		return fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[{"function":{"name":"f","arguments":{}}}]}`, text)
	}
	return fmt.Sprintf(`{"role":"assistant","content":%q}`, text)
}

func messages(specs []string) string {
	var list []string
	for _, s := range specs {
		list = append(list, message(s))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// A conversation that does not fit loses its oldest messages, but no system message, no call without its results, and
// neither the last message nor what the user asked last.
func TestTruncate(t *testing.T) {
	f := serve(t, nil)
	long := strings.Repeat("lamp ", 200)
	for _, test := range []struct {
		name string
		in   []string
		want string // of the prompt, up to the template's end
	}{
		{"fits", []string{"u a", "a b", "u c"}, "system:brief|user:a|assistant:b|user:c|"},
		{"oldest first", []string{"u " + long, "a b", "u c"}, "system:brief|assistant:b|user:c|"},
		{"as few as possible", []string{"u " + long, "a b", "u c", "a d", "u e"},
			"system:brief|assistant:b|user:c|assistant:d|user:e|"},
		{"up to the long one", []string{"u a", "a b", "u c", "a " + long, "u e"}, "system:brief|user:e|"},
		{"own system message", []string{"s own", "u a", "a " + long, "u e"}, "system:own|user:e|"},
		{"system message in the middle", []string{"u " + long, "a b", "s more", "u e"},
			"system:brief|assistant:b|system:more|user:e|"},
		{"call with its results", []string{"u a", "C " + long, "t 1", "t 2", "u e"}, "system:brief|user:e|"},
		{"results with their call", []string{"u a", "C b", "t " + long, "t 2", "a d", "u e"},
			"system:brief|assistant:d|user:e|"},
		{"results come last", []string{"u a", "a " + long, "u c", "C d", "t 1", "t 2"},
			"system:brief|user:c|assistant:d|tool:1|tool:2|"},
		{"many calls for one question", []string{"u a", "a b", "u c", "C " + long, "t 1", "C d", "t 2", "C e", "t 3"},
			"system:brief|user:c|assistant:d|tool:2|assistant:e|tool:3|"},
		{"an answer to continue", []string{"u " + long, "a b", "u c", "a d"}, "system:brief|assistant:b|user:c|"},
	} {
		for _, option := range []string{``, `"truncate":true,`, `"truncate":null,`} {
			f.Has(t, "POST", "/api/chat", `{"model":"talk","stream":false,`+option+`"options":{"num_ctx":200},"messages":`+
				messages(test.in)+`}`, 200)
			got, _, _ := strings.Cut(strings.TrimSpace(f.Prompt(t)), "think=")
			got = strings.ReplaceAll(got, "\n\n"+`{"name": "f", "arguments": {}}`, "") // the template does not know calls
			if got != test.want {
				t.Errorf("%s: %q, want %q", test.name, got, test.want)
			}
		}
	}
}

// What cannot be left out is cut: the first num_keep tokens stay, and half of the rest of the context becomes free.
func TestCutPrompt(t *testing.T) {
	f := serve(t, nil)
	lamps := strings.Repeat("lamp ", 300)
	chat := `{"model":"talk","stream":false,"messages":[{"role":"user","content":"` + lamps + `"}]`
	raw := `{"model":"plain","stream":false,"raw":true,"prompt":"` + lamps + lamps + `"`
	f.Has(t, "POST", "/api/chat", chat+`}`, 200)
	whole := f.Parrot.Last(t).Prompt
	const limit = 100
	for _, test := range []struct {
		options string
		keep    int
	}{
		{``, 5}, {`,"num_keep":0`, 1}, {`,"num_keep":20`, 21}, {`,"num_keep":-1`, 99}, {`,"num_keep":1000`, 99},
	} {
		f.Has(t, "POST", "/api/chat", chat+fmt.Sprintf(`,"options":{"num_ctx":%d%s}}`, limit, test.options), 200)
		most := limit - max((limit-test.keep)/2, 1)
		want := slices.Concat(whole[:test.keep], whole[len(whole)-(most-test.keep):])
		if got := f.Parrot.Last(t).Prompt; !slices.Equal(got, want) {
			t.Errorf("%s: %d tokens, want %d", test.options, len(got), len(want))
		}
	}
	f.Has(t, "POST", "/api/generate", raw+`}`, 200) // longer than the model's context
	if got := f.Parrot.Last(t).Prompt; len(got) != 512-(512-5)/2 {
		t.Errorf("%d tokens of a raw prompt", len(got))
	}
	f.Has(t, "POST", "/api/generate", raw+`,"options":{"num_ctx":100}}`, 200)
	ids := strings.Repeat("7,", 600)
	f.Has(t, "POST", "/api/generate", `{"model":"talk","prompt":"Hi","stream":false,"context":[`+ids+`7]}`, 200)
	for _, body := range []string{`"truncate":false`, `"shift":false`, `"truncate":false,"shift":false`} {
		for path, request := range map[string]string{"/api/chat": chat, "/api/generate": raw} {
			f.Has(t, "POST", path, request+","+body+`,"options":{"num_ctx":100}}`, 400, "exceeds the context length of 100")
		}
	}
	f.Has(t, "POST", "/api/chat", `{"model":"talk","truncate":"yes","messages":[{"role":"user","content":"x"}]}`, 400,
		"truncate")
}

// The server's limit of the context counts like the model's.
func TestContextOfServer(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.Context = 64 })
	f.Has(t, "POST", "/api/generate", `{"model":"plain","raw":true,"stream":false,"prompt":"`+strings.Repeat("lamp ", 100)+
		`"}`, 200)
	if got := f.Parrot.Last(t).Prompt; len(got) != 64-(64-5)/2 {
		t.Errorf("%d tokens", len(got))
	}
	f.Has(t, "GET", "/api/ps", "", 200, `"context_length":64`)
}

// endless is a model that generates as much as the context and the request allow, and records the prompts.
type endless struct {
	*servertest.Parrot
	context int
}

func (m endless) Generate(_ context.Context, r runtime.Request) iter.Seq2[runtime.Event, error] {
	m.Mu.Lock()
	m.Requests = append(m.Requests, r)
	m.Mu.Unlock()
	return func(yield func(runtime.Event, error) bool) {
		n := m.context - len(r.Prompt)
		if r.MaxTokens > 0 {
			n = min(n, r.MaxTokens)
		}
		for i := range n {
			e := runtime.Event{IDs: []int32{int32(100 + len(r.Prompt) + i)}, Text: "x", Stats: runtime.Stats{
				PromptTokens: len(r.Prompt), PromptTime: 1, Tokens: i + 1, GenerateTime: 1, TargetSteps: i + 1}}
			if i == n-1 {
				e.Done = runtime.DoneLength
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// A response that fills the context goes on without the oldest tokens, unless the request forbids it, and ends at
// num_predict or, without that, when it has half as many tokens as the context.
func TestShift(t *testing.T) {
	var model endless
	f := serve(t, func(o *server.Options) {
		o.Load = func(context.Context, server.Child, func(float64)) (pool.Model, error) {
			model = endless{servertest.NewParrot(), 512}
			return model, nil
		}
	})
	for _, test := range []struct {
		more    string
		tokens  int   // of the response
		prompts []int // tokens of each evaluated prompt
	}{
		{`"num_ctx":32,"num_predict":20}`, 20, []int{6}},
		{`"num_ctx":32,"num_predict":50}`, 50, []int{6, 19, 19}},
		{`"num_ctx":32,"num_predict":50,"num_keep":9}`, 50, []int{6, 19, 19}},
		{`"num_ctx":32,"num_predict":50},"shift":true`, 50, []int{6, 19, 19}},
		{`"num_ctx":32,"num_predict":50},"shift":false`, 26, []int{6}},
		{`"num_ctx":32,"num_predict":50},"format":"json"`, 26, []int{6}},
		{`"num_ctx":32}`, 26, []int{6}},
		{`"num_ctx":10}`, 5, []int{6, 8}},
		{`"num_ctx":10},"shift":false`, 4, []int{6}},
		{`"num_ctx":32,"num_predict":50,"num_keep":-1}`, 50, []int{6, 19, 19}}, // all of the prompt
		{`"num_ctx":8,"num_predict":50,"num_keep":-1}`, 2, []int{6}},           // more than half of the context
		{`"num_ctx":32,"num_predict":50,"num_keep":16}`, 50, []int{6, 19, 19}}, // no more than the prompt has
		{`"num_predict":600}`, 600, []int{6, 259}},
	} {
		for _, stream := range []string{"true", "false"} {
			f.Ask(t, "POST", "/api/generate", `{"model":"plain"}`)
			model.Requests = nil
			_, text := f.Ask(t, "POST", "/api/generate", `{"model":"plain","raw":true,"prompt":"lamp lamp lamp",`+
				`"stream":`+stream+`,"options":{`+test.more+`}`)
			list := servertest.Lines(t, text)
			end, said := list[len(list)-1], ""
			for _, l := range list {
				said += l["response"].(string)
			}
			var prompts []int
			for _, r := range model.Requests {
				prompts = append(prompts, len(r.Prompt))
				if !slices.Equal(r.Prompt[:2], model.Requests[0].Prompt[:2]) {
					t.Errorf("%s: the first tokens are dropped: %v", test.more, r.Prompt)
				}
			}
			if end["eval_count"] != float64(test.tokens) || len(said) != test.tokens || end["done_reason"] != "length" ||
				end["prompt_eval_count"] != 6.0 || !slices.Equal(prompts, test.prompts) {
				t.Errorf("%s, stream %s: %d characters, %v tokens of %v, prompts %v", test.more, stream, len(said),
					end["eval_count"], end["prompt_eval_count"], prompts)
			}
		}
	}
}

// A model's process that has less memory than the server reckons with ends the response.
func TestShiftWithoutRoom(t *testing.T) {
	var model endless
	f := serve(t, func(o *server.Options) {
		o.Load = func(context.Context, server.Child, func(float64)) (pool.Model, error) {
			model = endless{servertest.NewParrot(), 18}
			return model, nil
		}
	})
	f.Has(t, "POST", "/api/generate", `{"model":"plain","raw":true,"prompt":"lamp lamp lamp","stream":false,`+
		`"options":{"num_ctx":32,"num_predict":50}}`, 200, `"done_reason":"length"`, `"eval_count":12`)
	if len(model.Requests) != 1 {
		t.Errorf("%d prompts", len(model.Requests))
	}
}
