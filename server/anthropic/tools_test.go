package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// offered returns the names of the tools that a request offers to the model, and the tools.
func offered(t *testing.T, body string) (string, offers) {
	t.Helper()
	_, c, o, err := translate(t, body, seeing)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var names []string
	for _, tool := range c.Tools {
		f, err := tool.Function()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
	}
	return strings.Join(names, " "), o
}

// description is what the model is told about the first tool.
func description(t *testing.T, o offers) string {
	t.Helper()
	b, err := json.Marshal(o.list[0].Tool)
	var tool struct{ Function struct{ Description string } }
	if err == nil {
		err = json.Unmarshal(b, &tool)
	}
	if err != nil {
		t.Fatal(err)
	}
	return tool.Function.Description
}

const messages = `"messages":[{"role":"user","content":"x"}]`

// Tools are offered if the client runs them, whatever their type's date, and once the model may know of them.
func TestOffers(t *testing.T) {
	const deferred = `"tools":[{"name":"a"},{"name":"b","defer_loading":true},{"name":"c","defer_loading":true}`
	refer := func(block string) string {
		return `,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"s",` +
			`"name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"s",` +
			`"content":[` + block + `]}]}]`
	}
	change := func(role string, blocks ...string) string {
		return `,"messages":[{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}]`
	}
	const addB = `{"type":"tool_addition","tool":{"type":"tool_reference","name":"b"}}`
	const defineD = `{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"d"}}}`
	remove := func(name string) string {
		return `{"type":"tool_removal","tool":{"type":"tool_reference","name":"` + name + `"}}`
	}
	for body, want := range map[string]string{
		`"tools":[{"name":"a","input_schema":{"type":"object"}},{"type":"custom","name":"b"},{"type":null,"name":"c"}],` +
			messages: "a b c",
		`"tools":[{"type":"bash_20990101"},{"type":"bash_20241022","name":"sh"}],` + messages: "bash sh",
		`"tools":[{"type":"text_editor_20250124","name":"str_replace_editor"},{"type":"text_editor_20250728"}],` +
			messages: "str_replace_editor str_replace_based_edit_tool",
		`"tools":[{"type":"memory_20250818","name":"memory"},{"type":"computer_20251124","name":"computer"}],` +
			messages: "memory computer",
		`"tools":[{"type":"computer_toolset_20260801"},{"type":"browser_toolset_20270101"}],` + messages: "computer browser",
		`"tools":[{"type":"web_search_20260318","name":"web_search"},{"type":"web_fetch_20250910","name":"web_fetch"},` +
			`{"type":"code_execution_20260521","name":"code_execution"},{"type":"mcp_toolset","mcp_server_name":"s"},` +
			`{"type":"advisor_20260301","name":"advisor"},{"type":"hologram_20300101","name":"h"},{"name":"a"}],` +
			messages: "a",
		`"tools":[{"type":"hologram_20300101","name":"h","input_schema":{"type":"object"}}],` + messages: "h",
		`"tools":[{"name":"a","allowed_callers":["code_execution_20260120"]},{"name":"b","allowed_callers":["direct"]}],` +
			messages: "b",
		deferred + `],` + messages: "a",
		deferred + `]` + refer(`{"type":"tool_reference","tool_name":"c"}`):                                 "a c",
		deferred + `]` + refer(`{"type":"text","text":"none"}`):                                             "a",
		deferred + `,{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}],` + messages: "a b c",
		deferred + `],"tool_choice":{"type":"tool","name":"c"},` + messages:                                 "a c",
		deferred + `],"tool_choice":{"type":"none"},` + messages:                                            "",
		deferred + `]` + change("system", addB):                                                             "a b",
		deferred + `]` + change("user", addB, remove("a"), remove("none")):                                  "b",
		deferred + `]` + change("user", defineD):                                                            "a d",
		deferred + `]` + change("user", defineD, remove("d"), defineD):                                      "a d",
		deferred + `]` + change("user", `{"type":"tool_addition","tool":{"type":"mcp_toolset_reference"}}`): "a",
	} {
		if got, _ := offered(t, `{`+body+`}`); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// The schemas of typed tools accept the inputs that their documentation names, and no other commands.
func TestClientTools(t *testing.T) {
	for _, c := range []struct{ tool, good, bad string }{
		{`{"type":"bash_20250124"}`, `{"command":"ls"}|{"restart":true}`, `{"command":5}`},
		{`{"type":"text_editor_20250728","max_characters":900}`, `{"command":"view","path":"/a","view_range":[1,-1]}|` +
			`{"command":"insert","path":"/a","insert_line":0,"insert_text":"x"}`, `{"command":"undo_edit","path":"/a"}|{}`},
		{`{"type":"text_editor_20241022"}`, `{"command":"undo_edit","path":"/a"}|{"command":"insert","path":"/a",` +
			`"insert_line":0,"new_str":"x"}`, `{"command":"rename","path":"/a"}`},
		{`{"type":"memory_20250818"}`, `{"command":"rename","old_path":"/a","new_path":"/b"}`, `{"command":"undo_edit"}`},
		{`{"type":"computer_20241022","display_width_px":1024,"display_height_px":768}`,
			`{"action":"left_click","coordinate":[1,2]}|{"action":"screenshot"}`, `{"action":"scroll"}|{"action":"zoom"}`},
		{`{"type":"computer_20250124"}`, `{"action":"scroll","scroll_direction":"up","scroll_amount":3}`,
			`{"action":"zoom"}`},
		{`{"type":"computer_20251124","enable_zoom":true}`, `{"action":"zoom","region":[0,0,9,9]}`, `{"action":"fly"}`},
		{`{"type":"computer_toolset_20260801","configs":{"zoom":{"enabled":false},"wait":{"enabled":true}}}`,
			`{"action":"type","text":"x"}|{"action":"wait","duration":1}`, `{"action":"zoom"}`},
		{`{"type":"browser_toolset_20260801"}`, `{"action":"left_click","target":{"type":"ref","ref":"ref_7"}}|` +
			`{"action":"form_input","target":{"type":"ref","ref":"r"},"value":true}`, `{"action":"cursor_position"}`},
	} {
		_, o := offered(t, `{"tools":[`+c.tool+`],`+messages+`}`)
		raw, err := jsonschema.UnmarshalJSON(strings.NewReader(string(o.list[0].Parameters)))
		compiler := jsonschema.NewCompiler()
		if err == nil {
			err = compiler.AddResource("schema", raw)
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", c.tool, err, o.list[0].Parameters)
		}
		s, err := compiler.Compile("schema")
		if err != nil {
			t.Fatal(err)
		}
		for input := range strings.SplitSeq(c.good+"|"+c.bad, "|") {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(input))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Validate(v) == nil; got != strings.Contains(c.good, input) {
				t.Errorf("%s: %s is valid: %v", c.tool, input, got)
			}
		}
		if about := description(t, o); len(about) < 40 {
			t.Errorf("%s: description %q", c.tool, about)
		}
	}
	for kind, words := range map[string]string{
		`"computer_20250124","display_width_px":1024,"display_height_px":768`: "1024 x 768",
		`"text_editor_20250728","max_characters":900`:                         "900 characters",
		`"computer_toolset_20260801","configs":{"wait":{"enabled":false}}`:    "hold_key (text, duration). Inputs",
	} {
		_, o := offered(t, `{"tools":[{"type":`+kind+`}],`+messages+`}`)
		if about := description(t, o); !strings.Contains(about, words) {
			t.Errorf("%s: %s, want %q", kind, about, words)
		}
	}
}

// Calls of a toolset are calls of its members.
func TestFamilies(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"action":"left_click","coordinate":[1,2]}`: `left_click {"coordinate": [1, 2]}`,
		`{"action":"screenshot"}`:                    `screenshot {}`,
		`{"coordinate":[1,2]}`:                       `computer {"coordinate":[1,2]}`,
		`{"action":5}`:                               `computer {"action":5}`,
		`[]`:                                         `computer []`,
	} {
		name, input := memberCall(parse.ToolCall{Name: "computer", Arguments: []byte(arguments)})
		if got := fmt.Sprintf("%s %s", name, input); got != want {
			t.Errorf("%s: %s, want %s", arguments, got, want)
		}
	}
	f := serve(t, nil)
	f.Says = []string{`<tool_call>{"name": "computer", "arguments": {"action": "key", "text": "ctrl+s"}}</tool_call>` +
		`<tool_call>{"name": "f", "arguments": {"action": "x"}}</tool_call>`}
	const body = `"model":"talk","max_tokens":50,"tools":[{"type":"computer_toolset_20260801"},{"name":"f"}],` + messages
	got := f.postMessage(t, `{`+body+`}`)
	list, _ := json.Marshal(got["content"])
	for _, want := range []string{`"input":{"text":"ctrl+s"},"name":"key","toolset_name":"computer"`,
		`"input":{"action":"x"},"name":"f","type"`} {
		if !strings.Contains(string(list), want) {
			t.Errorf("%s lacks %s", list, want)
		}
	}
	f.Has(t, "POST", "/v1/messages", `{"stream":true,`+body+`}`, 200, `"name":"key","toolset_name":"computer","input":{}`,
		`"partial_json":"{\"text\": \"ctrl+s\"}"`)
}
