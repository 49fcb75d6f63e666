package openai

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
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
		response.Model != "talk" ||
		len(response.Choices) != 1 || response.Created == 0 || !strings.HasPrefix(response.Fingerprint, "fp_") {
		t.Fatalf("%d: %s", status, text)
	}
	c := response.Choices[0]
	if m := c.Message; m.Role != "assistant" || m.Content == nil || *m.Content != "It is so." || m.Reasoning != "hm" ||
		m.ReasoningContent != "hm" || len(m.Calls) != 1 ||
		*m.Calls[0].Function != (chatFunctionJSON{"f", `{"x":1}`}) || m.Calls[0].Type != "function" ||
		len(m.Calls[0].ID) != 9 || *c.Finish != "tool_calls" || c.LogProbs != nil {
		t.Errorf("response: %s", text)
	}
	if u := *response.Usage; u.Prompt == 0 || u.Completion != 4 || u.Total != u.Prompt+4 || u.OfCompletion.Reasoning != 2 {
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
		hi+`,"tools":[`+toolG+`],"stream":true,"stream_options":{"include_usage":true},"logprobs":true,"top_logprobs":1}`)
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
			"system:brief|user:a|assistant:{\"name\": \"f\", \"arguments\": {}}|tool:c|think=-"},
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
		image("data:image/png;base64,AAAA"): {"messages[0].content[0].image_url", "cannot see pictures"},
		`{"model":"talk","messages":[]}`:    {"messages", "at least one message"},
		`{"model":"talk","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`: {
			"messages[0].content[0]", "input_audio",
		},
		`{"model":"talk","messages":[{"role":"guest","content":"x"}]}`: {"messages[0]", "role guest"},
		`{"model":"talk","messages":[null]}`:                           {"messages[0]", "null, want an object"},
		`{"model":"talk","messages":[{"content":"x"}]}`:                {"messages[0].role", "missing"},
		`{"model":"talk","messages":[{"role":"user","content":[1]}]}`:  {"messages[0].content[0]", "want an object"},
		`{"model":"talk","messages":[{"role":"assistant","tool_calls":[{"function":1}]}]}`: {
			"messages[0].tool_calls[0].function", "want an object",
		},
		hi + `,"n":0}`:                              {"n", "between 1 and 128"},
		hi + `,"n":1000}`:                           {"n", "between 1 and 128"},
		hi + `,"max_tokens":0}`:                     {"max_tokens", "at least 1"},
		hi + `,"temperature":-1}`:                   {"temperature", "negative"},
		hi + `,"top_p":2}`:                          {"top_p", "between"},
		hi + `,"top_logprobs":2}`:                   {"top_logprobs", "requires logprobs"},
		hi + `,"logprobs":true,"top_logprobs":101}`: {"top_logprobs", "between 0 and 100"},
		hi + `,"functions":[{"name":""}]}`:          {"functions[0].name", "is missing"},
		hi + `,"functions":[{"name":"f"}],"function_call":{"name":"g"}}`: {"function_call", `no tool is named \"g\"`},
		hi + `,"modalities":["text","audio"]}`:                           {"modalities", "not supported"},
		hi + `,"web_search_options":{"a":1}}`:                            {"web_search_options", "not supported"},
		hi + `,"response_format":{"type":"xml"}}`:                        {"response_format", "response_format"},
		hi + `,"response_format":{"type":"json_schema"}}`:                {"response_format", "needs a schema"},
		hi + `,"tools":[{"type":"web_search"}]}`:                         {"tools[0]", "web_search"},
		hi + `,"tools":[{"type":"function"}]}`:                           {"tools[0].name", "is missing"},
		hi + `,"tools":[` + toolF + `],"tool_choice":{"type":"function","function":{"name":"h"}}}`: {
			"tool_choice", `no tool is named \"h\"`,
		},
		hi + `,"tool_choice":"required"}`: {"tool_choice", "the request has no tools"},
		hi + `,"tool_choice":"any"}`:      {"tool_choice", "auto, none, required"},
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
		"none": {`,"tool_choice":"none"`, 0, "", nil, "Hi|think"},
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
					strings.Contains(text, `"finish_reason":"tool_calls"`) != (c.calls > 0) {
					t.Errorf("%d, %d calls, want %d: %s", status, n, c.calls, text)
				}
				if stream == "" && strings.Contains(text, `"content":null`) != (c.calls > 0) {
					t.Errorf("content beside calls, or none: %s", text)
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
