package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/openai/items"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/servertest"
)

const flatF = `{"type":"function","name":"f","description":"d","strict":true,"parameters":{"type":"object",` +
	`"properties":{"x":{"type":"integer"}}}}`

func TestResponses(t *testing.T) {
	f := serve(t, nil)
	f.Says = toolOutput
	status, text := f.Ask(t, "POST", "/v1/responses",
		`{"model":"talk","input":"Hi","instructions":"be brief","tools":[`+flatF+`],"tool_choice":"auto","temperature":0.5,`+
			`"max_output_tokens":9,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"},`+
			`"store":true,"metadata":{"a":"b"},"truncation":"disabled"}`)
	response := servertest.Decode[responseJSON](t, text)
	if status != 200 || response.Object != "response" || response.Status != "completed" ||
		response.Model != "talk" ||
		!response.Store || response.Temperature != 0.5 ||
		*response.MaxTokens != 9 || string(response.Metadata) != `{"a":"b"}` || *response.Reasoning.Effort != "low" ||
		*response.Instructions != "be brief" || response.CompletedAt == nil {
		t.Fatalf("%d: %s", status, text)
	}
	if u := response.Usage; u.Output != 4 || u.Input == 0 || u.Total != u.Input+4 || u.OfOutput.Reasoning != 2 {
		t.Errorf("usage: %+v", u)
	}
	if o := response.Output; len(o) != 3 || o[0].Type != "reasoning" || (*o[0].Content)[0].Text != "hm" ||
		o[0].Encrypted != "ingot:reasoning:hm" ||
		o[1].Type != "message" || o[1].Role != "assistant" || (*o[1].Content)[0].Text != "It is so." ||
		o[1].Status != "completed" ||
		o[2].Type != "function_call" || o[2].Name != "f" || string(o[2].Arguments) != `"{\"x\":1}"` || o[2].CallID == "" {
		t.Errorf("output: %s", text)
	}
	if got := f.Prompt(t); got != "system:be brief|user:Hi|T=f|think=True" {
		t.Errorf("prompt %q", got)
	}
	if r := f.Parrot.Last(t); r.MaxTokens != 9 || r.Format.After != "<tool_call>" || r.LogProbs {
		t.Errorf("request: %+v", r)
	}

	_, text = f.Ask(t, "POST", "/v1/responses",
		`{"model":"talk","input":"Hi","tools":[`+flatF+`],"stream":true,"top_logprobs":1}`)
	var names []string
	deltas := map[string]string{}
	for i, e := range servertest.Events(t, text) {
		v := servertest.Decode[responseEvent](t, e.Data)
		if v.Type != e.Name || v.Number != i {
			t.Errorf("event %d: %s: %s", i, e.Name, e.Data)
		}
		if v.Delta != nil {
			deltas[v.Type] += *v.Delta
		}
		if v.Type == "response.output_text.done" && len(*v.LogProbs) == 0 {
			t.Errorf("no logprobs: %s", e.Data)
		}
		if n := len(names); n == 0 || names[n-1] != e.Name { // count consecutive deltas as one
			names = append(names, e.Name)
		}
	}
	item := func(kind string) []string {
		return []string{"output_item.added", "content_part.added", kind + ".delta", kind + ".done", "content_part.done",
			"output_item.done"}
	}
	want := slices.Concat([]string{"created", "in_progress"}, item("reasoning_text"), item("output_text"),
		[]string{"output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
			"completed"})
	for i := range want {
		want[i] = "response." + want[i]
	}
	if !slices.Equal(names, want) {
		t.Errorf("events:\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if deltas["response.reasoning_text.delta"] != "hm" || deltas["response.output_text.delta"] != "It is so." ||
		deltas["response.function_call_arguments.delta"] != `{"x":1}` {
		t.Errorf("%v", deltas)
	}

	// Use the output as input.
	output, err := json.Marshal(response.Output)
	if err != nil {
		t.Fatal(err)
	}
	back := strings.TrimSuffix(strings.TrimPrefix(string(output), "["), "]")
	f.Has(t, "POST", "/v1/responses",
		`{"model":"talk","input":[{"role":"developer","content":"d"},{"role":"user","content":[{"type":"input_text",`+
			`"text":"Hi"}]},`+back+
			`,{"type":"function_call_output","call_id":"`+response.Output[2].CallID+`","output":"2"}]}`, 200)
	if got := f.Prompt(t); got != "system:d|user:Hi|assistant:"+
		"It is so.\n\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}|tool:2|think=-" {
		t.Errorf("prompt %q", got)
	}
	for body, part := range map[string]string{
		`"input":"x","conversation":"conv_1"`:                                             `"param":"conversation"`,
		`"input":"x","background":true,"stream":true`:                                     `"param":"background"`,
		`"input":"x","background":true,"store":false`:                                     `"param":"background"`,
		`"input":"x","max_output_tokens":0`:                                               `"param":"max_output_tokens"`,
		`"input":"x","tools":[{"type":"web_search"}],"tool_choice":"required"`:            `"param":"tool_choice"`,
		`"input":"x","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`: "does not run the tool web_search",
		`"input":"x","tools":[null]`:                                                      "tool",
		`"input":[]`:                                                                      `"param":"input"`,
		`"tools":[]`:                                                                      `"param":"input"`,
		`"input":{"a":1}`:                                                                 "a text or a list",
		`"input":[{"type":"item_reference","id":"msg_1"}]`:                                `"param":"input[0].id"`,
		`"input":[{"type":"none of the items"}]`:                                          "none of the items",
		`"input":[{"role":"user"}]`:                                                       `"param":"input[0].content"`,
		`"input":[{"role":"user","content":[{"type":"input_file"}]}]`:                     "content[0].file_data: is missing",
		`"input":[{"role":"user","content":[` +
			`{"type":"input_image","image_url":"https://a.example/b.png"}]}]`: `"param":"input[0].content[0].image_url"`,
	} {
		f.Has(t, "POST", "/v1/responses", `{"model":"talk",`+body+`}`, 400, `"type":"invalid_request_error"`, part)
	}
	f.Has(t, "POST", "/v1/responses",
		`{"model":"talk","input":"x","tools":[{"type":"web_search"},`+flatF+`,{"type":"custom","name":"c"}],`+
			`"truncation":"auto","text":{"verbosity":"low"},"service_tier":"flex","user":"u","safety_identifier":"s",`+
			`"prompt_cache_options":{"mode":"explicit"},"include":["file_search_call.results"],"max_tool_calls":3,`+
			`"context_management":[{"type":"compaction"}],"stream_options":{"include_obfuscation":false}}`, 200,
		`"tools":[`+flatF+`,{"type":"custom","name":"c"}]`)
	if got := f.Prompt(t); strings.Count(got, "T=") != 2 {
		t.Errorf("prompt %q", got)
	}
	f.Has(t, "POST", "/v1/responses",
		`{"model":"talk","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},`+
			`"previous_response_id":null}`, 200,
		`"format":{"type":"json_schema"`)
	if got := f.Parrot.Last(t).Format; got != (runtime.Format{Kind: runtime.FormatSchema, Source: `{"type":"object"}`}) {
		t.Errorf("format %+v", got)
	}
}

// FuzzOpenAI decodes bodies. They may be rejected.
func FuzzOpenAI(f *testing.F) {
	for _, s := range []string{
		hi + `,"tools":[` + toolF + `,` + toolG +
			`],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function",` +
			`"function":{"name":"g"}}]}}}`,
		hi + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}},"stop":["a"],` +
			`"logit_bias":{"1":2},"reasoning_effort":"low","functions":[]}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},` +
			`{"type":"text","text":"x"}]},{"role":"tool","tool_call_id":"1","content":"x"}]}`,
		`{"prompt":["a",[1,2]],"logprobs":1,"echo":true,"suffix":"x"}`,
		`{"input":"x","tools":[` + flatF +
			`],"tool_choice":{"type":"function","name":"f"},"include":["a"],"text":{"format":{"type":"text"}}}`,
		`{"input":[{"type":"reasoning","summary":[{"text":"a"}]},{"type":"function_call","call_id":"1","name":"f",` +
			`"arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"x"}]}`,
		`{"input":[{"role":"user","content":[{"type":"input_file","file_data":"aGk="},{"type":"reasoning"}]},` +
			`{"type":"x_call","call_id":"1"},{"type":"shell_call_output","output":[{"outcome":1}]},{"id":"a"},` +
			`{"type":"tool_search_output","call_id":"2","tools":[{"tools":[1]},{"type":"custom","name":"c"}]}],` +
			`"tools":[{"type":"namespace","name":"n","tools":[{"name":"f"}]},{"type":"custom","name":"n__f"}],` +
			`"tool_choice":{"type":"namespace","name":"n"}}`,
		`{"messages":[{"role":"Assistant","function_call":{"name":"f"},"refusal":"x"},{"role":"function","content":{}},` +
			`{"role":"assistant","tool_calls":[{"custom":{"input":1}},null]}],"functions":[{"name":"f"}],` +
			`"function_call":{"name":"f"}}`,
		`{"tools":[null],"messages":[null],"input":[null],"prompt":[null],"tool_choice":null,"response_format":null}`,
	} {
		f.Add([]byte(s))
	}
	style := &prompt.Style{}
	name := func(int) string { return "x" }
	f.Fuzz(func(t *testing.T, body []byte) {
		var c chatCompletion
		if json.Unmarshal(body, &c) == nil && c.check() == nil {
			if list, err := c.Messages.decode(); err == nil {
				_, _ = turns(list, style, name, sighted)
			}
			_, _, _, _ = c.use(t.Context())
			_, _ = c.options(c.MaxTokens, "max_tokens")
		}
		var p textCompletion
		if json.Unmarshal(body, &p) == nil && p.check() == nil {
			for _, one := range p.Prompt {
				if one.ids != nil && len(one.ids) == 0 {
					t.Error("a prompt without ids")
				}
			}
		}
		var r responseRequest
		if json.Unmarshal(body, &r) == nil && r.check() == nil {
			list, err := r.Input.Decode(func(string) (json.RawMessage, bool, error) { return nil, false, nil })
			if err != nil {
				return
			}
			set, err := tools.ReadResponses(t.Context(), tools.List(r.Tools), items.Added(list)...)
			if err != nil {
				return
			}
			if said, err := items.Read(list, set); err == nil {
				_, _ = turns(said.Messages, style, name, sighted)
			}
			for _, it := range list {
				_, _ = it.Stored()
			}
			_, _, _ = set.Use(r.ToolChoice, r.Parallel)
		}
	})
}

// One item that is stored cannot be referred to so often that it takes the server's memory.
func TestManyReferences(t *testing.T) {
	f := serve(t, nil)
	small := `{"id":"small","role":"user","content":"` + strings.Repeat("x", 300) + `"}`
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","store":true,"input":[`+small+`]}`, 200)
	refer := func(n int) string {
		const one = `{"type":"item_reference","id":"small"}`
		return `{"model":"talk","input":[` + strings.Repeat(one+",", n-1) + one + `]}`
	}
	f.Has(t, "POST", "/v1/responses/input_tokens", refer(2), 200)
	f.Has(t, "POST", "/v1/responses/input_tokens", refer(200_000), 400, "have more than 67108864 bytes")
}
