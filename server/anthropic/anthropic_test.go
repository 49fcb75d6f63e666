package anthropic

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/convert/settings"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/servertest"
	"github.com/ingotml/ingot/server/wire"
)

// postMessage returns the response of /v1/messages.
func (f *fixture) postMessage(t *testing.T, body string) map[string]any {
	t.Helper()
	status, text := f.Ask(t, "POST", "/v1/messages?beta=true", body)
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	return out
}

// messageEvent is an event of a stream of Anthropic's API.
type messageEvent struct {
	name string
	data map[string]any
}

// messageEvents decodes a stream, and checks that the data of each event repeats its type.
func messageEvents(t *testing.T, text string) (list []messageEvent) {
	t.Helper()
	for _, e := range servertest.Events(t, text) {
		m := messageEvent{e.Name, servertest.Decode[map[string]any](t, e.Data)}
		if m.data["type"] != m.name {
			t.Errorf("event %s has the data %s", e.Name, e.Data)
		}
		list = append(list, m)
	}
	return list
}

func TestMessages(t *testing.T) {
	f := serve(t, nil)
	got := f.postMessage(t,
		`{"model":"plain","max_tokens":7,"temperature":0,"top_k":3,"top_p":0.5,"stop_sequences":["x"],`+
			`"metadata":{"user_id":"u"},"service_tier":"auto",`+
			`"messages":[{"role":"user","content":[{"type":"text","text":"Once","cache_control":{"type":"ephemeral"}}]}]}`)
	id, _ := got["id"].(string)
	delete(got, "id")
	want := map[string]any{
		"type": "message", "role": "assistant", "model": "plain:latest",
		"content":     []any{map[string]any{"type": "text", "text": "Hello world"}},
		"stop_reason": "end_turn", "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 2., "cache_creation_input_tokens": 0., "cache_read_input_tokens": 0.,
			"output_tokens":         2.,
			"output_tokens_details": map[string]any{"thinking_tokens": 0.}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !strings.HasPrefix(id, "msg_") {
		t.Errorf("%s: %s", id, diff)
	}
	r := f.Parrot.Last(t)
	if r.Sampling.Temperature != 0 || r.Sampling.TopK != 3 || r.Sampling.TopP != 0.5 || r.MaxTokens != 7 ||
		!slices.Equal(r.Stop, []string{"x"}) || r.Format.Kind != "" {
		t.Errorf("request: %+v", r)
	}
}

// If max_tokens is 0, the prompt is processed and nothing is generated.
func TestMessagesWarm(t *testing.T) {
	f := serve(t, nil)
	const body = `"model":"plain","max_tokens":0,"messages":[{"role":"user","content":"Once"}]`
	got := f.postMessage(t, `{`+body+`}`)
	if len(got["content"].([]any)) != 0 || got["stop_reason"] != "max_tokens" ||
		got["usage"].(map[string]any)["output_tokens"] != 0. || f.Parrot.Last(t).MaxTokens != 1 {
		t.Errorf("%v", got)
	}
	_, text := f.Ask(t, "POST", "/v1/messages", `{"stream":true,`+body+`}`)
	if list := messageEvents(t, text); len(list) != 3 || list[0].name != "message_start" ||
		list[1].name != "message_delta" || list[2].name != "message_stop" {
		t.Errorf("%s", text)
	}
}

func TestMessagesWithTools(t *testing.T) {
	f := serve(t, nil)
	f.Says = sampleOutput
	got := f.postMessage(t, `{`+sampleRequest+`}`)
	ids := map[string]bool{}
	for _, b := range got["content"].([]any) {
		if b := b.(map[string]any); b["type"] == "tool_use" {
			ids[b["id"].(string)] = true
			delete(b, "id")
		}
	}
	want := []any{
		map[string]any{"type": "thinking", "thinking": "hm hm", "signature": signature},
		map[string]any{"type": "text", "text": "Let me see."},
		map[string]any{"type": "tool_use", "name": "f", "input": map[string]any{"x": 1.}},
		map[string]any{"type": "tool_use", "name": "g", "input": map[string]any{}},
	}
	if diff := cmp.Diff(want, got["content"]); diff != "" || len(ids) != 2 || got["stop_reason"] != "tool_use" {
		t.Errorf("%v, ids %v, %s", got["stop_reason"], ids, diff)
	}
	if got := strings.TrimSpace(f.Prompt(t)); got != "system:brief|user:Hi|T=f|T=g|think=True" {
		t.Errorf("prompt %q", got)
	}

	// Without thinking in the request, the response has none. With disable_parallel_tool_use, it has one call.
	got = f.postMessage(t,
		`{"model":"talk","max_tokens":50,"messages":[{"role":"user","content":"Hi"}],`+
			`"tools":[{"name":"f","input_schema":{"type":"object"}}],`+
			`"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`)
	if list := got["content"].([]any); len(list) != 2 || list[0].(map[string]any)["type"] != "text" ||
		list[1].(map[string]any)["name"] != "f" || got["stop_reason"] != "tool_use" {
		t.Errorf("%v", got)
	}
	if got := strings.TrimSpace(f.Prompt(t)); got != "system:brief|user:Hi|T=f|think=False" {
		t.Errorf("prompt %q", got)
	}
	f.postMessage(t, `{`+sampleRequest+`}`)
	if got := f.Parrot.Last(t).Format; got != (runtime.Format{After: "</think>", Within: 1024, Open: "<think>"}) {
		t.Errorf("thinking budget: %+v", got)
	}
	for choice, must := range map[string]bool{
		`{"type":"any"}`: true, `{"type":"tool","name":"g"}`: true, `{"type":"auto"}`: false,
	} {
		f.postMessage(t, `{`+sampleRequest+`,"tool_choice":`+choice+`}`)
		if r := f.Parrot.Last(t); (r.Format.Kind == runtime.FormatEBNF) != must ||
			must && strings.Contains(r.Format.Source, `"f`) == strings.Contains(choice, "tool") {
			t.Errorf("%s: %+v", choice, r.Format)
		}
	}
	f.postMessage(t, `{`+sampleRequest+`,"tool_choice":{"type":"none"}}`)
	if got := f.Prompt(t); strings.Contains(got, "T=") {
		t.Errorf("prompt without tools: %q", got)
	}
}

func TestMessagesStream(t *testing.T) {
	f := serve(t, nil)
	f.Says = sampleOutput
	status, text := f.Ask(t, "POST", "/v1/messages", `{"stream":true,`+sampleRequest+`}`)
	if status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	var got []string
	for _, e := range messageEvents(t, text) {
		line := e.name
		for _, key := range []string{"content_block", "delta"} {
			if part, ok := e.data[key].(map[string]any); ok {
				delete(part, "id")
				b, err := wire.Encode(part)
				if err != nil {
					t.Fatal(err)
				}
				line += fmt.Sprint(" ", e.data["index"], " ", strings.TrimSpace(string(b)))
			}
		}
		if line == "content_block_stop" {
			line += fmt.Sprint(" ", e.data["index"])
		}
		if m, ok := e.data["message"].(map[string]any); ok {
			if m["content"] == nil || len(m["content"].([]any)) > 0 || m["stop_reason"] != nil ||
				m["usage"].(map[string]any)["input_tokens"].(float64) < 5 {
				t.Errorf("the stream starts with %v", m)
			}
		}
		if u, ok := e.data["usage"].(map[string]any); ok && (u["output_tokens"] != 8. || u["cache_read_input_tokens"] != 0.) {
			t.Errorf("the stream ends with %v", u)
		}
		got = append(got, line)
	}
	want := []string{
		`message_start`,
		`content_block_start 0 {"signature":"","thinking":"","type":"thinking"}`,
		`content_block_delta 0 {"thinking":"hm","type":"thinking_delta"}`,
		`content_block_delta 0 {"thinking":" hm","type":"thinking_delta"}`,
		`content_block_delta 0 {"signature":"ingot","type":"signature_delta"}`,
		`content_block_stop 0`,
		`content_block_start 1 {"text":"","type":"text"}`,
		`content_block_delta 1 {"text":"Let me","type":"text_delta"}`,
		`content_block_delta 1 {"text":" see.","type":"text_delta"}`,
		`content_block_stop 1`,
		`content_block_start 2 {"input":{},"name":"f","type":"tool_use"}`,
		`content_block_delta 2 {"partial_json":"{\"x\":1}","type":"input_json_delta"}`,
		`content_block_stop 2`,
		`content_block_start 3 {"input":{},"name":"g","type":"tool_use"}`,
		`content_block_delta 3 {"partial_json":"{}","type":"input_json_delta"}`,
		`content_block_stop 3`,
		`message_delta <nil> {"stop_reason":"tool_use","stop_sequence":null}`,
		`message_stop`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesPrompt(t *testing.T) {
	f := serve(t, nil)
	const call = `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},` +
		`{"type":"redacted_thinking","data":"x"},{"type":"text","text":"So"},{"type":"tool_use","id":"c1","name":"f",` +
		`"input":{"x":1}},{"type":"tool_use","id":"c2","name":"g","input":{}}]}`
	for name, c := range map[string]struct{ body, want string }{
		"texts": {`"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user",` +
			`"content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}]`,
			"system:brief|user:a|assistant:b|user:c\nd|think=False"},
		"system text": {`"system":"s","messages":[{"role":"user","content":"a"}]`,
			"system:s|user:a|think=False"},
		"system blocks": {`"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1"},{"type":"text",` +
			`"text":"s","cache_control":{"type":"ephemeral"}},{"type":"text","text":"t"}],"messages":[{"role":"user",` +
			`"content":"a"}]`, "system:s\nt|user:a|think=False"},
		"empty system text": {`"system":[],"messages":[{"role":"user","content":"a"}]`,
			"system:brief|user:a|think=False"},
		"consecutive user messages": {`"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]`,
			"system:brief|user:a\nb|think=False"},
		"tools": {`"messages":[{"role":"user","content":"a"},` + call +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"2"},{"type":"tool_result",` +
			`"tool_use_id":"c1","is_error":true},{"type":"text","text":"and"}]}]`,
			"system:brief|user:a|assistant:So|tool:2|tool:error|user:and|think=False"},
		"result of blocks": {`"messages":[` + call +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"2"},` +
			`{"type":"text","text":"3"}]}]}]`, "system:brief|assistant:So|tool:2\n3|think=False"},
		"document": {`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text",` +
			`"media_type":"text/plain","data":"d"}}]}]`, "system:brief|user:d|think=False"},
		"thinking": {`"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},"messages":[{"role":"user",` +
			`"content":"a"}]`, "system:brief|user:a|think=True"},
		"thinking between tools": {`"thinking":{"type":"between_tools"},"messages":[` + call +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"2"}]}]`,
			"system:brief|assistant:So|tool:2|think=True"},
		"no thinking before tools": {`"thinking":{"type":"between_tools"},"messages":[{"role":"user","content":"a"}]`,
			"system:brief|user:a|think=False"},
		"continued response": {`"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"It is"}]`,
			"system:brief|user:a|think=FalseIt is"},
	} {
		t.Run(name, func(t *testing.T) {
			f.postMessage(t, `{"model":"talk","max_tokens":5,`+c.body+`}`)
			if got := strings.TrimSpace(f.Prompt(t)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			status, text := f.Ask(t, "POST", "/v1/messages/count_tokens", `{"model":"talk",`+c.body+`}`)
			if want := fmt.Sprintf(`{"input_tokens":%d}`, len(f.Parrot.Last(t).Prompt)); status != 200 ||
				strings.TrimSpace(text) != want {
				t.Errorf("count_tokens: %d: %s, want %s", status, text, want)
			}
		})
	}
}

func TestMessagesRefused(t *testing.T) {
	f := serve(t, nil)
	const hi = `"messages":[{"role":"user","content":"Hi"}]`
	content := func(block string) string { return `"messages":[{"role":"user","content":[` + block + `]}]` }
	for body, want := range map[string]string{
		`"messages":[]`:         "messages",
		`"messages":"x"`:        "messages",
		`"max_tokens":-1,` + hi: "max_tokens",
		`"messages":[{"role":"robot","content":"x"}]`:                              "messages.0.role",
		content(`{"type":"image","source":{"type":"url","url":"http://a/b.png"}}`): `content.0.source: image source \"url\"`,
		content(`{"type":"image","source":{"type":"base64","data":"!"}}`):          "not valid base64",
		content(`{"type":"image","source":{"type":"base64","data":"AAAA"}}`):       "vision",
		content(`{"type":"image"}`):                                                "source",
		content(`{"type":"document","source":{"type":"base64","data":"AAAA"}}`):    `document source \"base64\"`,
		content(`{"type":"search_result","source":"a","title":"b","content":[]}`):  `\"search_result\" is not supported`,
		content(`{"type":"server_tool_use"}`):                                      `\"server_tool_use\" is not supported`,
		content(`{"type":"tool_result","tool_use_id":"x","content":"1"}`):          "tool_use_id",
		content(`{"type":"tool_use","id":"x","name":"f","input":{}}`):              "is not supported here",
		`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":[]}]},{"role":"user",` +
			`"content":"x"}]`: "messages.0.content.0.input",
		`"system":[{"type":"image"}],` + hi:                                            "system.0",
		`"tools":[{"type":"web_search_20250305","name":"web_search"}],` + hi:           "web_search_20250305",
		`"tools":[{"name":"f"}],` + hi:                                                 "tools.0.input_schema",
		`"tools":[{"input_schema":{}}],` + hi:                                          "tools.0.name",
		`"tool_choice":{"type":"any"},` + hi:                                           "the request has no tools",
		`"tool_choice":{"type":"tool","name":"g"},` + hi:                               `no tool is named \"g\"`,
		`"tool_choice":{"type":"sometimes"},` + hi:                                     "tool_choice.type",
		`"thinking":{"type":"deeply"},` + hi:                                           "thinking.type",
		`"thinking":{"type":"enabled","budget_tokens":0},` + hi:                        "thinking.budget_tokens",
		`"output_config":{"effort":"some"},` + hi:                                      "output_config.effort",
		`"output_config":{"format":{"type":"xml"}},` + hi:                              "output_config.format",
		`"stop_sequences":["` + strings.Repeat("x", params.MaxStopText+1) + `"],` + hi: "stop",
		content(`{"type":"text","text":"` + strings.Repeat("word ", 600) + `"}`):       "prompt is too long: ",
	} {
		f.Has(t, "POST", "/v1/messages", `{"model":"talk","max_tokens":5,`+body+`}`, 400,
			`{"type":"error","error":{"type":"invalid_request_error","message":"`, want)
	}
	f.Has(t, "POST", "/v1/messages", `{"model":"talk",`+hi+`}`, 400, "max_tokens")
	f.Has(t, "POST", "/v1/messages", `{"model":"none","max_tokens":5,`+hi+`}`, 404, `"type":"not_found_error"`,
		"ingot pull")
	f.Has(t, "GET", "/v1/messages", ``, 405, `"type":"invalid_request_error"`)
	f.Has(t, "POST", "/v1/messages/batches", `{}`, 404, `"type":"not_found_error"`)
	f.Has(t, "POST", "/v1/messages", `{"model":"plain","max_tokens":5,"system":"s",`+hi+`}`, 400, "a system message")
	f.Has(t, "POST", "/v1/messages", `{"model":"plain","max_tokens":13,`+hi+`}`, 500, `"type":"api_error"`, "out of range")
}

func TestMessagesErrors(t *testing.T) {
	const body = `"model":"plain","max_tokens":5,"messages":[{"role":"user","content":"x"}]`
	for name, c := range map[string]struct {
		fail   error
		status int
		kind   string
		want   string
	}{
		"busy": {fmt.Errorf("512 requests wait: %w", runtime.ErrBusy), 529, "overloaded_error", "512 requests wait"},
		"died": {fmt.Errorf("%w: signal: killed", runner.ErrDied), 500, "api_error", "signal: killed"},
		"no room": {fmt.Errorf("the prompt has 9 tokens: %w", runtime.ErrMemory), 400, "invalid_request_error",
			"prompt is too long: the prompt has 9 tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil)
			f.Says, f.Fail = nil, c.fail
			want := []string{`{"type":"error","error":{"type":"` + c.kind + `","message":"`, c.want}
			f.Has(t, "POST", "/v1/messages", `{`+body+`}`, c.status, want...)
			f.Has(t, "POST", "/v1/messages", `{"stream":true,`+body+`}`, c.status, want...)
			_ = f.Parrot.Close()
			f.Says = []string{"Hello"}
			status, text := f.Ask(t, "POST", "/v1/messages", `{"stream":true,`+body+`}`)
			list := messageEvents(t, text)
			last := list[len(list)-1]
			if status != 200 || last.name != "error" || !strings.Contains(fmt.Sprint(last.data["error"]), c.want) ||
				!strings.Contains(fmt.Sprint(last.data["error"]), c.kind) {
				t.Errorf("error after the start: %d: %s", status, text)
			}
		})
	}
	f := serve(t, func(o *server.Options) { o.APIKey, o.MaxBody = "secret", 1000 })
	for _, c := range []struct {
		status  int
		kind    string
		body    string
		headers []string
	}{
		{401, "authentication_error", body, nil},
		{401, "authentication_error", body, []string{"X-Api-Key", "other"}},
		{200, "", body, []string{"X-Api-Key", "secret"}},
		{200, "", body, []string{"Authorization", "Bearer secret", "X-Api-Key", ""}},
		{200, "", body, []string{"Authorization", "Bearer dummy", "X-Api-Key", "secret"}},
		{403, "permission_error", body, []string{"X-Api-Key", "secret", "Host", "evil.example"}},
		{413, "request_too_large", body + strings.Repeat(" ", 1000), []string{"X-Api-Key", "secret"}},
	} {
		status, text := f.Ask(t, "POST", "/v1/messages", `{`+c.body+`}`, c.headers...)
		if status != c.status || c.kind != "" && !strings.Contains(text, `"type":"`+c.kind+`"`) {
			t.Errorf("%v: %d: %s, want %d %s", c.headers, status, text, c.status, c.kind)
		}
	}
}

// Pings fill silence, also before the first token. After a ping, an error is sent as an event.
func TestMessagesPings(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.Timeout = 200 * time.Millisecond })
	f.Says, f.Fail, f.Wait = []string{"hm"}, runner.ErrDied, make(chan struct{})
	response, err := http.Post(f.URL+"/v1/messages", "application/json",
		strings.NewReader(`{"model":"plain","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var text strings.Builder
	b := make([]byte, 1024)
	for strings.Count(text.String(), "event: ping") < 2 {
		n, err := response.Body.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b[:n])
	}
	close(f.Wait)
	rest, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	list := messageEvents(t, text.String()+string(rest))
	if list[0].name != "message_start" || list[1].name != "ping" || list[len(list)-1].name != "error" {
		t.Errorf("%v", list)
	}
}

func TestMessagesStop(t *testing.T) {
	sequence := "x"
	for _, c := range []struct {
		o    server.Outcome
		want string
		at   *string
	}{
		{server.Outcome{Done: runtime.DoneStop}, stopEnd, nil},
		{server.Outcome{Done: runtime.DoneStop, Stop: "x"}, stopSequence, &sequence},
		{server.Outcome{Done: runtime.DoneStop, Stop: "the model's"}, stopEnd, nil},
		{server.Outcome{Done: runtime.DoneLength, Stats: runtime.Stats{Tokens: 9}, Calls: 1}, stopLength, nil},
		{server.Outcome{Done: runtime.DoneLength, Stats: runtime.Stats{Tokens: 8}}, stopContext, nil},
		{server.Outcome{Done: runtime.DoneStop, Calls: 1}, stopTool, nil},
	} {
		q := messagesRequest{MaxTokens: new(9), StopSequences: []string{"", "x"}}
		if diff := cmp.Diff(endDelta{&c.want, c.at}, q.stopReason(c.o)); diff != "" {
			t.Errorf("%+v: %s", c.o, diff)
		}
	}
}

// White space alone makes no block, unless the response has nothing else.
func TestBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		parts []string // "call" stands for a tool call
		want  string
	}{
		"nothing":               {nil, ""},
		"white space":           {[]string{" ", "\n"}, "text( \n)"},
		"before a text":         {[]string{"\n", " a", " "}, "text(\n a )"},
		"between calls":         {[]string{"call", "\n", "call", "\n"}, "tool_use() tool_use()"},
		"between call and text": {[]string{"call", "\n", "a"}, "tool_use() text(\na)"},
	} {
		var b blocks
		for _, p := range c.parts {
			if p == "call" {
				if err := b.call(parse.ToolCall{Name: "f", Arguments: []byte("{}")}); err != nil {
					t.Fatal(err)
				}
			} else if err := b.add(textBlock, p); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.close(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range b.list {
			text := ""
			if x.Text != nil {
				text = *x.Text
			}
			got = append(got, x.Type+"("+text+")")
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q, want %q", name, s, c.want)
		}
	}
}

// Every body is accepted or rejected, without a panic.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		`{` + sampleRequest + `}`,
		`{"model":"m","max_tokens":1,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user",` +
			`"content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64",` +
			`"data":"AAAA"}}]}]}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"a":[1,{}]}},` +
			`{"type":"thinking","thinking":"x"}]},{"role":"user","content":"x"}]}`,
		`{"messages":[{"role":"user","content":` + strings.Repeat(`[{"type":"tool_result","content":`, 50) + `""` +
			strings.Repeat("}]", 50) + `}]}`,
		`{"tool_choice":{"type":"tool","name":"f"},"output_config":{"format":{"type":"json_schema","schema":{}},` +
			`"effort":"low"},"thinking":{"type":"enabled","budget_tokens":-1},"messages":[{"role":"user","content":null}]}`,
	} {
		f.Add([]byte(s))
	}
	template, err := chat.Parse(f.Context(), "{% for m in messages %}{{ m.content }}{% endfor %}")
	if err != nil {
		f.Fatal(err)
	}
	style := &prompt.Style{Texts: &settings.Texts{}, Template: template}
	f.Fuzz(func(t *testing.T, body []byte) {
		var q messagesRequest
		if json.Unmarshal(body, &q) != nil {
			return
		}
		c, err := q.conversation(style)
		if err == nil && len(c.Messages) == 0 && c.Answer == "" && len(q.Messages) > 0 &&
			slices.ContainsFunc(q.Messages, func(m messageParam) bool { return joined(m.Content) != "" }) {
			t.Errorf("no messages from %s", body)
		}
		if _, err := q.toolUse(); err == nil {
			_, _ = q.format()
		}
	})
}

// TestMessagesTwoFormats: output_config.format always takes precedence over output_format.
func TestMessagesTwoFormats(t *testing.T) {
	var q messagesRequest
	body := `{"output_format":{"type":"json_schema","schema":{"const":1}},` +
		`"output_config":{"format":{"type":"json_schema","schema":{"const":2}}}}`
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if f, err := q.format(); err != nil || f.Source != `{"const":2}` {
			t.Fatalf("format %q, %v", f.Source, err)
		}
	}
}
