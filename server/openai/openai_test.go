package openai

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

// toolOutput is a model's output with thinking, text and a call, in pieces that do not align with the tags.
var toolOutput = []string{"<think>\nhm", "</think>\n", "It is",
	` so.<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`}

const (
	hi    = `{"model":"talk","messages":[{"role":"user","content":"Hi"}]`
	toolF = `{"type":"function","function":{"name":"f","description":"d","strict":true,"parameters":{"type":"object",` +
		`"properties":{"x":{"type":"integer"}},"required":["x"]}}}`
	toolG = `{"type":"function","function":{"name":"g","parameters":{"type":"object"}}}`
)

func TestChatCompletions(t *testing.T) {
	f := serve(t, nil)
	f.Says = toolOutput
	status, text := f.Ask(t, "POST", "/v1/chat/completions",
		hi+`,"tools":[`+toolG+`],"temperature":0.5,"top_p":0.4,"presence_penalty":0.3,"frequency_penalty":0.2,`+
			`"seed":7,"stop":["x",""],"max_completion_tokens":9,"max_tokens":3,"logit_bias":{"5":-100},"top_k":3,`+
			`"user":"u","store":true,"metadata":{"a":"b"},"functions":null}`)
	response := servertest.Decode[chatCompletionJSON](t, text)
	if status != 200 || response.Object != "chat.completion" || !strings.HasPrefix(response.ID, "chatcmpl-") ||
		response.Model != "talk:latest" ||
		len(response.Choices) != 1 || response.Created == 0 || !strings.HasPrefix(response.Fingerprint, "fp_") {
		t.Fatalf("%d: %s", status, text)
	}
	c := response.Choices[0]
	if m := c.Message; m.Role != "assistant" || m.Content == nil || *m.Content != "It is so." || m.Reasoning != "hm" ||
		m.ReasoningContent != "hm" || len(m.Calls) != 1 ||
		m.Calls[0].Function != (chatFunctionJSON{"f", `{"x":1}`}) || m.Calls[0].Type != "function" ||
		len(m.Calls[0].ID) != 9 || *c.Finish != "tool_calls" || c.LogProbs != nil {
		t.Errorf("response: %s", text)
	}
	if u := *response.Usage; u.Prompt == 0 || u.Completion != 4 || u.Total != u.Prompt+4 || u.OfAnswer.Reasoning != 2 {
		t.Errorf("usage: %+v", u)
	}
	r := f.Parrot.Last(t)
	if s := r.Sampling; s.Temperature != 0.5 || s.TopP != 0.4 || s.PresencePenalty != 0.3 || s.FrequencyPenalty != 0.2 ||
		*s.Seed != 7 || s.TopK != 3 ||
		s.LogitBias[5] != -100 || r.MaxTokens != 9 || !slices.Equal(r.Stop, []string{"x"}) || !r.Special ||
		r.Format.Kind != "" {
		t.Errorf("request: %+v", r)
	}
	if got := f.Prompt(t); got != "system:brief|user:Hi|T=g|think=-" {
		t.Errorf("prompt %q", got)
	}

	status, text = f.Ask(t, "POST", "/v1/chat/completions",
		hi+`,"stream":true,"stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":1}`)
	list := servertest.Events(t, text)
	var content, thought, arguments, finish string
	var probs int
	for i, e := range list[:len(list)-2] {
		chunk := servertest.Decode[chatCompletionJSON](t, e.Data)
		if len(chunk.Choices) != 1 || chunk.Object != "chat.completion.chunk" || chunk.Choices[0].Index != 0 ||
			chunk.ID != servertest.Decode[chatCompletionJSON](t, list[0].Data).ID {
			t.Fatalf("chunk %d: %s", i, e.Data)
		}
		d := chunk.Choices[0].Delta
		if (d.Role == "assistant") != (i == 0) {
			t.Errorf("chunk %d has the role %q", i, d.Role)
		}
		if d.Content != nil {
			content += *d.Content
		}
		if thought += d.Reasoning; d.Reasoning != d.ReasoningContent {
			t.Errorf("thinking: %s", e.Data)
		}
		for _, c := range d.Calls {
			if *c.Index != 0 || c.Function.Name != "f" {
				t.Errorf("a call: %s", e.Data)
			}
			arguments += c.Function.Arguments
		}
		if p := chunk.Choices[0].LogProbs; p != nil {
			for _, l := range p.Content {
				if probs++; l.LogProb != -1 || len(l.Top) != 1 || l.Bytes == nil {
					t.Errorf("logprobs: %s", e.Data)
				}
			}
		}
		if f := chunk.Choices[0].Finish; f != nil {
			finish = *f
		}
	}
	if status != 200 || strings.TrimSpace(content) != "It is so." || thought != "hm" || arguments != `{"x":1}` ||
		finish != "tool_calls" || probs != 4 {
		t.Errorf("%d: content %q, thinking %q, arguments %q, finish %q, %d logprobs\n%s",
			status, content, thought, arguments, finish, probs, text)
	}
	last := servertest.Decode[chatCompletionJSON](t, list[len(list)-2].Data)
	if len(last.Choices) != 0 || last.Usage == nil || last.Usage.Completion != 4 || list[len(list)-1].Data != "[DONE]" {
		t.Errorf("the end: %+v", list[len(list)-2:])
	}
	if strings.Contains(list[0].Data, `"usage"`) || !strings.Contains(list[len(list)-2].Data, `"choices":[]`) {
		t.Errorf("%s\n%s", list[0].Data, list[len(list)-2].Data)
	}
}

func TestChatMessages(t *testing.T) {
	f := serve(t, nil)
	for _, c := range []struct{ body, want string }{
		{`{"role":"developer","content":"a"},{"role":"system","content":[{"type":"text","text":"b"}]},` +
			`{"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}`,
			"system:a\n\nb|user:cd|think=-"},
		{`{"role":"user","content":"a"},{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"1","content":"c"}`,
			"system:brief|user:a|assistant:None|tool:c|think=-"},
		{`{"role":"system","content":""},{"role":"user","content":"a"},{"role":"system","content":"b"}`,
			"user:a|system:b|think=-"},
	} {
		f.Has(t, "POST", "/v1/chat/completions", `{"model":"talk","messages":[`+c.body+`]}`, 200)
		if got := f.Prompt(t); got != c.want {
			t.Errorf("%s: prompt %q, want %q", c.body, got, c.want)
		}
	}
	for effort, want := range map[string]string{"none": "False", "minimal": "True", "high": "True", "xhigh": "True"} {
		f.Has(t, "POST", "/v1/chat/completions", hi+`,"reasoning_effort":"`+effort+`"}`, 200)
		if got := f.Prompt(t); !strings.HasSuffix(got, "think="+want) {
			t.Errorf("effort %s: prompt %q", effort, got)
		}
	}
	f.Has(t, "POST", "/v1/chat/completions", hi+`,"chat_template_kwargs":{"enable_thinking":false}}`, 200)
	if got := f.Prompt(t); !strings.HasSuffix(got, "think=False") {
		t.Errorf("prompt %q", got)
	}
	image := func(url string) string {
		return `{"model":"talk","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url +
			`"}}]}]}`
	}
	for body, want := range map[string][2]string{
		image("http://localhost/a.png"):     {"messages[0].content[0].image_url", "does not fetch images"},
		image("file:///etc/passwd"):         {"messages[0].content[0].image_url", "does not fetch images"},
		image("data:image/png;base64,!"):    {"messages[0].content[0].image_url", "not valid base64"},
		image("data:image/png;base64,AAAA"): {"", "vision"},
		`{"model":"talk","messages":[]}`:    {"messages", "at least one message"},
		`{"model":"talk","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`: {
			"messages[0].content[0]", "input_audio",
		},
		`{"model":"talk","messages":[{"role":"function","content":"x"}]}`: {"messages[0]", "role function"},
		hi + `,"n":0}`:                                    {"n", "between 1 and 128"},
		hi + `,"n":1000}`:                                 {"n", "between 1 and 128"},
		hi + `,"max_tokens":0}`:                           {"max_tokens", "at least 1"},
		hi + `,"temperature":-1}`:                         {"temperature", "negative"},
		hi + `,"top_p":2}`:                                {"top_p", "between"},
		hi + `,"top_logprobs":2}`:                         {"top_logprobs", "requires logprobs"},
		hi + `,"logprobs":true,"top_logprobs":101}`:       {"top_logprobs", "between 0 and 100"},
		hi + `,"functions":[{"name":"f"}]}`:               {"functions", "not supported"},
		hi + `,"modalities":["text","audio"]}`:            {"modalities", "not supported"},
		hi + `,"web_search_options":{"a":1}}`:             {"web_search_options", "not supported"},
		hi + `,"verbosity":"low"}`:                        {"verbosity", "not supported"},
		hi + `,"reasoning_effort":"deep"}`:                {"", "reasoning effort"},
		hi + `,"response_format":{"type":"xml"}}`:         {"", "response_format"},
		hi + `,"response_format":{"type":"json_schema"}}`: {"", "needs a schema"},
		hi + `,"tools":[{"type":"custom"}]}`:              {"tools[0]", "custom"},
		hi + `,"tools":[{"type":"function"}]}`:            {"tools[0]", "function is missing"},
		hi + `,"tools":[` + toolF + `],"tool_choice":{"type":"function","function":{"name":"h"}}}`: {
			"tool_choice", `no tool is named \"h\"`,
		},
		hi + `,"tool_choice":"required"}`: {"tool_choice", "the request has no tools"},
		hi + `,"tool_choice":"any"}`:      {"", "tool_choice"},
		`{"model":"talk","messages":[{"role":"user","content":"` + strings.Repeat("word ", 600) + `"}]}`: {
			"", "context length is 512",
		},
	} {
		status, text := f.Ask(t, "POST", "/v1/chat/completions", body)
		e := servertest.Decode[openAIFailure](t, text).Error
		param := ""
		if e.Param != nil {
			param = *e.Param
		}
		if status != 400 || e.Type != "invalid_request_error" || param != want[0] || !strings.Contains(text, want[1]) {
			t.Errorf("%.200s: %d: %s; want parameter %q and %q", body, status, text, want[0], want[1])
		}
		hasCode := e.Code != nil && *e.Code == "context_length_exceeded"
		if long := strings.Contains(text, "context length is 512"); long != hasCode {
			t.Errorf("code: %s", text)
		}
	}
}

func TestChatTools(t *testing.T) {
	f := serve(t, nil)
	f.Says = []string{`<tool_call>{"name": "f", "arguments": {}}</tool_call>`,
		`<tool_call>{"name": "g", "arguments": {}}</tool_call>`}
	tools := hi + `,"tools":[` + toolF + `,` + toolG + `]`
	for name, c := range map[string]struct {
		more   string
		calls  int
		after  string
		parts  []string // of the format; nil: no format
		prompt string
	}{
		"auto, strict": {``, 2, "<tool_call>", []string{"root ::= rest", `\"name\": \"f\"`, `\"name\": \"g\"`, "integer",
			"(\"\\n</tool_call>\\n<tool_call>\\n\" call)*"}, "T=f|T=g"},
		"none": {`,"tool_choice":"none"`, 2, "", nil, "Hi|think"},
		"required": {`,"tool_choice":"required"`, 2, "", []string{"root ::= calls", `\"name\": \"f\"`, "call)*"},
			"T=f|T=g"},
		"named": {`,"tool_choice":{"type":"function","function":{"name":"g"}}`, 1, "",
			[]string{"root ::= calls", "call0 ::= \"{\\\"name\\\": \\\"g\\\""}, "T=f|T=g"},
		"allowed": {`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function",` +
			`"function":{"name":"g"}}]}}`, 2, "", nil, "Hi|T=g|"},
		"one at a time": {`,"tool_choice":"required","parallel_tool_calls":false`, 1, "",
			[]string{"rest ::= \"\\n\" call \"\\n</tool_call>\""}, "T=f|T=g"},
		"with a schema": {`,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"const":1}}}`, 2,
			"", []string{`root ::= calls | %json {"const":1}`}, "T=f"},
		"with JSON": {`,"response_format":{"type":"json_object"}`, 2, "",
			[]string{`root ::= calls | %json {"type": "object"}`}, "T=f"},
		"required, plain": {`,"tool_choice":"required","response_format":{"type":"text"}`, 2, "", []string{"root ::= calls"},
			"T=f"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stream := range []string{"", `,"stream":true`} {
				status, text := f.Ask(t, "POST", "/v1/chat/completions", tools+c.more+stream+"}")
				if n := strings.Count(text, `"type":"function"`); status != 200 || n != c.calls ||
					!strings.Contains(text, `"finish_reason":"tool_calls"`) {
					t.Errorf("%d, %d calls, want %d: %s", status, n, c.calls, text)
				}
				if stream == "" && !strings.Contains(text, `"content":null`) {
					t.Errorf("content with only calls: %s", text)
				}
			}
			r := f.Parrot.Last(t)
			if (r.Format.Kind == runtime.FormatEBNF) != (c.parts != nil) || r.Format.After != c.after {
				t.Errorf("format %+v", r.Format)
			}
			for _, p := range c.parts {
				if !strings.Contains(r.Format.Source, p) {
					t.Errorf("the grammar lacks %s:\n%s", p, r.Format.Source)
				}
			}
			if c.parts == nil && strings.Contains(r.Format.Source, "strict") {
				t.Errorf("format %+v", r.Format)
			}
			if got := f.Prompt(t); !strings.Contains(got, c.prompt) {
				t.Errorf("prompt %q lacks %s", got, c.prompt)
			}
		})
	}
	f.Has(t, "POST", "/v1/chat/completions",
		hi+`,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}}`, 200)
	if got := f.Parrot.Last(t).Format; got != (runtime.Format{Kind: runtime.FormatSchema, Source: `{"type":"object"}`}) {
		t.Errorf("format %+v", got)
	}
}

func TestChoices(t *testing.T) {
	f := serve(t, nil)
	status, text := f.Ask(t, "POST", "/v1/chat/completions", hi+`,"n":3,"seed":5}`)
	response := servertest.Decode[chatCompletionJSON](t, text)
	if status != 200 || len(response.Choices) != 3 || response.Usage.Completion != 6 {
		t.Fatalf("%d: %s", status, text)
	}
	for i, c := range response.Choices {
		if c.Index != i || *c.Message.Content != "Hello world" || *c.Finish != "stop" {
			t.Errorf("choice %d: %s", i, text)
		}
	}
	var seeds []int64
	for _, r := range f.Parrot.Asked {
		seeds = append(seeds, *r.Sampling.Seed)
	}
	if slices.Sort(seeds); !slices.Equal(seeds, []int64{5, 6, 7}) ||
		response.Usage.Prompt != len(f.Parrot.Last(t).Prompt) {
		t.Errorf("seeds %v, usage %+v", seeds, response.Usage)
	}
	_, text = f.Ask(t, "POST", "/v1/chat/completions", hi+`,"n":2,"stream":true}`)
	content := map[int]string{}
	for _, e := range servertest.Events(t, text) {
		if e.Data == "[DONE]" {
			break
		}
		c := servertest.Decode[chatCompletionJSON](t, e.Data).Choices[0]
		if c.Delta.Content != nil {
			content[c.Index] += *c.Delta.Content
		}
	}
	if len(content) != 2 || content[0] != "Hello world" || content[1] != "Hello world" {
		t.Errorf("%v\n%s", content, text)
	}
	f.Has(t, "POST", "/v1/chat/completions", hi+`,"n":2,"max_tokens":13}`, 500, `"type":"server_error"`, "out of range")
	f.Has(t, "POST", "/v1/chat/completions", hi+`}`, 200)
}

func TestCompletions(t *testing.T) {
	f := serve(t, nil)
	status, text := f.Ask(t, "POST", "/v1/completions", `{"model":"talk","prompt":"Once","max_tokens":5,"echo":true}`)
	response := servertest.Decode[textCompletionJSON](t, text)
	if status != 200 || response.Object != "text_completion" || len(response.Choices) != 1 ||
		response.Choices[0].Text != "OnceHello world" || *response.Choices[0].Finish != "stop" ||
		response.Usage.Completion != 2 {
		t.Fatalf("%d: %s", status, text)
	}
	once := f.Parrot.Last(t)
	if m, err := f.Find(t.Context(), "talk"); err != nil {
		t.Fatal(err)
	} else if want, err := m.Encode("Once"); err != nil || !slices.Equal(once.Prompt, want) || once.MaxTokens != 5 ||
		once.Special {
		t.Errorf("request %+v, want the prompt %v, %v", once, want, err)
	}
	status, text = f.Ask(t, "POST", "/v1/completions", `{"model":"plain","prompt":[[5,6],[7]],"n":2,"logprobs":1}`)
	response = servertest.Decode[textCompletionJSON](t, text)
	if status != 200 || len(response.Choices) != 4 || response.Usage.Prompt != 3 || response.Usage.Completion != 8 {
		t.Fatalf("%d: %s", status, text)
	}
	for i, c := range response.Choices {
		l := c.LogProbs
		if c.Index != i || l == nil || len(l.Tokens) != 2 || len(l.LogProbs) != 2 || len(l.Top) != 2 ||
			!slices.IsSorted(l.Offsets) || l.LogProbs[0] != -1 {
			t.Errorf("choice %d: %+v", i, c)
		}
	}
	for _, body := range []string{`"prompt":["a","b"],"stream":true`,
		`"prompt":["a","b"],"stream":true,"echo":true,"stream_options":{"include_usage":true}`} {
		_, text = f.Ask(t, "POST", "/v1/completions", `{"model":"plain",`+body+`}`)
		texts := map[int]string{}
		list := servertest.Events(t, text)
		for _, e := range list[:len(list)-1] {
			for _, c := range servertest.Decode[textCompletionJSON](t, e.Data).Choices {
				texts[c.Index] += c.Text
			}
		}
		want := map[int]string{0: "Hello world", 1: "Hello world"}
		if strings.Contains(body, "echo") {
			want = map[int]string{0: "aHello world", 1: "bHello world"}
		}
		if fmt.Sprint(texts) != fmt.Sprint(want) || list[len(list)-1].Data != "[DONE]" ||
			strings.Contains(text, `"usage"`) != strings.Contains(body, "usage") {
			t.Errorf("%s: %v\n%s", body, texts, text)
		}
	}
	for body, want := range map[string]string{
		`"prompt":"x","suffix":"y"`:                    `"param":"suffix"`,
		`"prompt":"x","best_of":2`:                     `"param":"best_of"`,
		`"prompt":"x","echo":true,"logprobs":1`:        `"param":"logprobs"`,
		`"prompt":"x","logprobs":-1`:                   `"param":"logprobs"`,
		`"prompt":[]`:                                  `"param":"prompt"`,
		`"n":1`:                                        `"param":"prompt"`,
		`"prompt":{"a":1}`:                             "prompt",
		`"prompt":[["a"]]`:                             "must be a text or a list",
		`"prompt":[[[1]]]`:                             "must be a text or a list",
		`"prompt":["a","b"],"n":100`:                   `"param":"prompt"`,
		`"prompt":[-1],"echo":true`:                    "negative",
		`"prompt":"x","logit_bias":{"word":1}`:         "logit_bias",
		`"prompt":"` + strings.Repeat("a ", 600) + `"`: "context_length_exceeded",
	} {
		f.Has(t, "POST", "/v1/completions", `{"model":"plain",`+body+`}`, 400, `"type":"invalid_request_error"`, want)
	}
	f.Has(t, "POST", "/v1/completions", `{"model":"plain","prompt":"x","suffix":null,"best_of":1,"user":"u"}`, 200)
}

func TestModels(t *testing.T) {
	f := serve(t, nil)
	servertest.Create(t, f.Options().Store, "registry.example/team/deep/model:v1")
	_, text := f.Ask(t, "GET", "/v1/models", "")
	list := servertest.Decode[openAIModels](t, text)
	if list.Object != "list" || len(list.Data) != 3 {
		t.Fatal(text)
	}
	for _, m := range list.Data {
		if m.Object != "model" || m.Created == 0 || m.OwnedBy == "" || m.Context != 512 {
			t.Errorf("%+v", m)
		}
		f.Has(t, "GET", "/v1/models/"+m.ID, "", 200, `"id":"`+m.ID+`"`, `"object":"model"`,
			fmt.Sprintf(`"created":%d`, m.Created))
	}
	f.Has(t, "GET", "/v1/models/talk", "", 200, `"id":"talk:latest"`)
	f.Has(t, "GET", "/v1/models/none", "", 404, `"code":"model_not_found"`)
	f.Has(t, "GET", "/v1/models/..%2f..%2fetc%2fpasswd", "", 400, `"type":"invalid_request_error"`)
}

// Errors have the form of the API that the path belongs to.
func TestDialects(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.MaxBody = 1000 })
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/nothing", "", 404},
		{"GET", "/v1/chat/completions", "", 405},
		{"POST", "/v1/completions", `{"prompt":"` + long + `"}`, 413},
		{"POST", "/v1/chat/completions", "{", 400},
		{"POST", "/v1/completions", `{"model":"none","prompt":"x"}`, 404},
		{"POST", "/v1/completions", `{"model":"plain","prompt":"x","max_tokens":13}`, 500},
	} {
		status, text := f.Ask(t, c.method, c.path, c.body)
		if e := servertest.Decode[openAIFailure](t, text).Error; status != c.status || e.Message == "" || e.Type == "" ||
			!strings.Contains(text, `"param":`) || !strings.Contains(text, `"code":`) {
			t.Errorf("%s %s: %d: %s", c.method, c.path, status, text)
		}
	}
	f.Has(t, "GET", "/nothing", "", 404, `{"error":"/nothing not found`)
	if status, text := f.Ask(t, "GET", "/v1/models", "", "Host", "evil.example"); status != 403 ||
		!strings.Contains(text, `"message":`) {
		t.Errorf("%d: %s", status, text)
	}
	locked := serve(t, func(o *server.Options) { o.APIKey = "secret" })
	locked.Has(t, "GET", "/v1/models", "", 401, `"code":"invalid_api_key"`)
	if status, text := locked.Ask(t, "GET", "/v1/models", "", "Authorization", "Bearer secret"); status != 200 {
		t.Errorf("%d: %s", status, text)
	}
	for name, c := range map[string]struct {
		fail   error
		status int
		want   string
	}{
		"busy": {fmt.Errorf("512 requests wait: %w", runtime.ErrBusy), 503, "server_error"},
		"died": {fmt.Errorf("%w: signal: killed", runner.ErrDied), 500, "server_error"},
		"room": {fmt.Errorf("no room: %w", runtime.ErrMemory), 400, "context_length_exceeded"},
		"else": {errors.New("a kernel is missing"), 500, "server_error"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil)
			f.Says, f.Fail = nil, c.fail
			f.Has(t, "POST", "/v1/chat/completions", hi+`,"stream":true}`, c.status, c.want)
			_ = f.Parrot.Close()
			f.Says = []string{"Hello"}
			status, text := f.Ask(t, "POST", "/v1/chat/completions", hi+`,"stream":true}`)
			list := servertest.Events(t, text)
			if e := servertest.Decode[openAIFailure](t, list[len(list)-1].Data).Error; status != 200 || len(list) != 2 ||
				e.Message == "" ||
				!strings.Contains(text, c.want) {
				t.Errorf("error after the start: %d: %s", status, text)
			}
			_, text = f.Ask(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi","stream":true}`)
			list = servertest.Events(t, text)
			if last := list[len(list)-1]; last.Name != "response.failed" || !strings.Contains(last.Data, `"status":"failed"`) ||
				!strings.Contains(last.Data, `"error":{"code":"`+c.want) {
				t.Errorf("error after the start of a response: %s", text)
			}
		})
	}
}
