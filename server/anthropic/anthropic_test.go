package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/runtime"
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

func TestMessages(t *testing.T) {
	f := serve(t, nil)
	got := f.postMessage(t,
		`{"model":"plain","max_tokens":7,"temperature":0,"top_k":3,"top_p":0.5,"stop_sequences":["x"],`+
			`"metadata":{"user_id":"u"},"service_tier":"auto",`+
			`"messages":[{"role":"user","content":[{"type":"text","text":"Once","cache_control":{"type":"ephemeral"}}]}]}`)
	id, _ := got["id"].(string)
	delete(got, "id")
	want := map[string]any{
		"type": "message", "role": "assistant", "model": "plain",
		"content":     []any{map[string]any{"type": "text", "text": "Hello world"}},
		"stop_reason": "end_turn", "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 0., "cache_creation_input_tokens": 2., "cache_read_input_tokens": 0.,
			"cache_creation":        map[string]any{"ephemeral_5m_input_tokens": 2., "ephemeral_1h_input_tokens": 0.},
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
	f.Parrot.LeftOut = []string{"/not: not enforced"}
	for _, more := range []string{"", `,"stream":true`} {
		f.Has(t, "POST", "/v1/messages", `{"model":"talk","max_tokens":9,"messages":[{"role":"user","content":"x"}],`+
			`"output_config":{"format":{"type":"json_schema","schema":{}}},"strict_schema":true,"best_effort":true`+more+`}`,
			200, `"left_out":["/not: not enforced"]`)
		if got := f.Parrot.Last(t).Format; !got.StrictSchema || !got.BestEffort || got.Kind != runtime.FormatSchema {
			t.Errorf("options of schemas: %+v", got)
		}
	}
	f.Parrot.LeftOut = nil
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
	got = f.postMessage(t, `{`+sampleRequest+`,"tool_choice":{"type":"none"}}`)
	if got["stop_reason"] != "end_turn" || len(got["content"].([]any)) != 2 ||
		strings.Contains(fmt.Sprint(got), "tool_use") {
		t.Errorf("a call without tools: %v", got)
	}
	if got := f.Prompt(t); strings.Contains(got, "T=") {
		t.Errorf("prompt without tools: %q", got)
	}
}

// called is a message with calls, for a template that does not show calls.
const called = "So\n\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n\n{\"name\": \"g\", \"arguments\": {}}"

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
			"system:brief|user:a|assistant:" + called + "|tool:2|tool:error|user:and|think=False"},
		"result of blocks": {`"messages":[` + call +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"2"},` +
			`{"type":"text","text":"3"}]}]}]`, "system:brief|assistant:" + called + "|tool:2\n3|think=False"},
		"document": {`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text",` +
			`"media_type":"text/plain","data":"d"}}]}]`, "system:brief|user:d|think=False"},
		"thinking": {`"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},"messages":[{"role":"user",` +
			`"content":"a"}]`, "system:brief|user:a|think=True"},
		"thinking between tools": {`"thinking":{"type":"between_tools"},"messages":[` + call +
			`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"2"}]}]`,
			"system:brief|assistant:" + called + "|tool:2|think=True"},
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
