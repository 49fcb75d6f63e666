package openai

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/servertest"
)

const (
	notes = `{"type":"namespace","name":"mcp__notes","description":"d","tools":[{"type":"function","name":"search",` +
		`"parameters":{"type":"object"}}]}`
	patch = `{"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"regex","definition":"a+"}}`
)

// called is the output of a model that calls a tool.
func called(name, arguments string) []string {
	return []string{`<tool_call>{"name": "` + name + `", "arguments": ` + arguments + `}</tool_call>`}
}

// Calls come back under the names that the client knows, in a stream and without.
func TestResponseCalls(t *testing.T) {
	for _, c := range []struct {
		tool, offered, arguments string
		item                     []string // parts of the item
		events                   []string
	}{
		{notes, "mcp__notes__search", `{"q":"x"}`, []string{`"type":"function_call"`, `"namespace":"mcp__notes"`,
			`"name":"search"`, `"arguments":"{\"q\":\"x\"}"`, `"id":"fc_`},
			[]string{"function_call_arguments.delta", "function_call_arguments.done"}},
		{patch, "apply_patch", `{"input":"*** \"a\"\n"}`, []string{`"type":"custom_tool_call"`, `"name":"apply_patch"`,
			`"input":"*** \"a\"\n"`, `"id":"ctc_`}, []string{"custom_tool_call_input.delta", "custom_tool_call_input.done"}},
		{`{"type":"tool_search","execution":"client","parameters":{"type":"object"}}`, "tool_search", `{"q":"x"}`,
			[]string{`"type":"tool_search_call"`, `"execution":"client"`, `"arguments":{"q":"x"}`}, nil},
	} {
		f := serve(t, nil)
		f.Says = called(c.offered, c.arguments)
		body := `{"model":"talk","input":"Hi","tools":[` + c.tool + `]`
		f.Has(t, "POST", "/v1/responses", body+"}", 200, append(c.item, `"tools":[`+c.tool+`]`, `"call_id":"`)...)
		if got := f.Prompt(t); !strings.Contains(got, "T="+c.offered+"|") {
			t.Errorf("prompt %q", got)
		}
		_, text := f.Ask(t, "POST", "/v1/responses", body+`,"stream":true}`)
		want := slices.Concat([]string{"created", "in_progress", "output_item.added"}, c.events,
			[]string{"output_item.done", "completed"})
		list := servertest.Events(t, text)
		var names []string
		for _, e := range list {
			names = append(names, strings.TrimPrefix(e.Name, "response."))
		}
		if !slices.Equal(names, want) {
			t.Errorf("events %q, want %q", names, want)
		}
		for _, part := range c.item {
			if !strings.Contains(list[len(list)-2].Data, part) {
				t.Errorf("%s lacks %s", list[len(list)-2].Data, part)
			}
		}
	}
}

// The pattern of a custom tool's input is enforced like the schema of a strict tool.
func TestCustomGrammar(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi","tools":[`+patch+`]}`, 200)
	if r := f.Parrot.Last(t); r.Format.Kind != runtime.FormatEBNF || !strings.Contains(r.Format.Source, `"^(?:a+)$"`) {
		t.Errorf("format %+v", r.Format)
	}
	f.Has(t, "POST", "/v1/responses", `{"model":"talk","input":"Hi","tools":[`+notes+`,`+patch+
		`],"tool_choice":{"type":"custom","name":"apply_patch"}}`, 200)
	if r := f.Parrot.Last(t); !strings.Contains(r.Format.Source, "root ::= calls") ||
		strings.Contains(r.Format.Source, "mcp__notes") {
		t.Errorf("format %+v", r.Format)
	}
}

func TestChatCustomTools(t *testing.T) {
	f := serve(t, nil)
	f.Says = called("edit_it", `{"input":"x"}`)
	body := hi + `,"tools":[{"function":{"name":"f"}},{"type":"custom","custom":{"name":"edit it","description":"d"}}]`
	want := `"type":"custom","custom":{"name":"edit it","input":"x"}}]`
	f.Has(t, "POST", "/v1/chat/completions", body+"}", 200, want, `"finish_reason":"tool_calls"`)
	if got := f.Prompt(t); !strings.Contains(got, "T=f|T=edit_it|") {
		t.Errorf("prompt %q", got)
	}
	f.Has(t, "POST", "/v1/chat/completions", body+`,"stream":true}`, 200, `"tool_calls":[{"index":0,"id":"`, want)
	list, err := servertest.Decode[chatMessages](t, `[{"role":"assistant","content":null,"tool_calls":[{"id":"1",`+
		`"type":"custom","custom":{"name":"edit it","input":"y"}},{"id":"2","type":"function","function":{"name":"f",`+
		`"arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":{"a":1}}]`).decode()
	if err != nil {
		t.Fatal(err)
	}
	if c := list[0].ToolCalls; len(c) != 2 || c[0].Name != "edit_it" || c[0].ID != "1" || c[1].Name != "f" ||
		list[1].Content != `{"a": 1}` {
		t.Errorf("%+v", list)
	}
}

// Requests in the form that tools had before they were called so get responses in that form.
func TestFunctions(t *testing.T) {
	f := serve(t, nil)
	f.Says = []string{called("f", `{"x":1}`)[0], called("f", `{"x":2}`)[0]}
	body := hi + `,"functions":[{"name":"f","description":"d","parameters":{"type":"object"}}]`
	call := `"function_call":{"name":"f","arguments":"{\"x\":1}"}`
	for _, more := range []string{"}", `,"function_call":"auto"}`, `,"function_call":{"name":"f"}}`, `,"stream":true}`} {
		status, text := f.Ask(t, "POST", "/v1/chat/completions", body+more)
		if status != 200 || strings.Count(text, "function_call\":{") != 1 || !strings.Contains(text, call) ||
			!strings.Contains(text, `"finish_reason":"function_call"`) || strings.Contains(text, "tool_calls") {
			t.Errorf("%s: %d: %s", more, status, text)
		}
	}
	f.Has(t, "POST", "/v1/chat/completions", body+`,"function_call":"none"}`, 200)
	if got := f.Prompt(t); strings.Contains(got, "T=f") {
		t.Errorf("prompt %q", got)
	}
	list, err := servertest.Decode[chatMessages](t, `[{"role":"User","content":"a"},{"role":"assistant","content":null,`+
		`"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"1"},`+
		`{"role":"assistant","content":"","refusal":"no","function_call":null}]`).decode()
	if err != nil {
		t.Fatal(err)
	}
	if list[0].Role != "user" || len(list[1].ToolCalls) != 1 || list[1].ToolCalls[0].ID != list[2].ToolCallID ||
		list[2].Role != "tool" || list[2].ToolCallID == "" || list[3].Content != "no" {
		t.Errorf("%+v", list)
	}
}
