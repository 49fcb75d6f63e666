package items

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/servertest"
)

// said is what a list of items says, one message a line.
func said(t *testing.T, text string) (string, error) {
	t.Helper()
	list, err := servertest.Decode[Input](t, text).Decode(func(id string) (json.RawMessage, bool, error) {
		return Message("user", "stored "+id), id == "known", nil
	})
	if err != nil {
		return "", err
	}
	namespace := json.RawMessage(`{"type":"namespace","name":"n","tools":[{"name":"f"}]}`)
	set, err := tools.ReadResponses(t.Context(), tools.List{namespace}, Added(list)...)
	if err != nil {
		return "", err
	}
	c, err := Read(list, set)
	var b strings.Builder
	for i, m := range c.Messages {
		fmt.Fprintf(&b, "%s %s", c.At[i], m.Role)
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, "(%s)", m.ToolCallID)
		}
		if m.Reasoning != "" {
			fmt.Fprintf(&b, " thinks %q", m.Reasoning)
		}
		for _, p := range m.Parts {
			fmt.Fprintf(&b, " %s:%s%s", p.Type, p.Text, p.PictureURL())
		}
		if m.Parts == nil && !m.Null {
			fmt.Fprintf(&b, " %q", m.Content)
		}
		for _, call := range m.ToolCalls {
			arguments, err := jinja.EncodeJSON(call.Arguments)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, " calls(%s) %s %s", call.ID, call.Name, arguments)
		}
		b.WriteString("\n")
	}
	return b.String(), err
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, items, want string }{
		{"text", `"hi"`, `input[0] user "hi"`},
		{"roles", `[{"role":"User","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text",` +
			`"text":"b"}]},{"type":"other","role":"user","content":"c"}]`,
			"input[0] user \"a\"\ninput[1] assistant output_text:b\ninput[2] user \"c\""},
		{"a call and its result", `[{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]},
			{"type":"function_call","call_id":"1","name":"f","namespace":"n","arguments":"{\"x\":1}"},
			{"type":"function_call","call_id":"2","name":"g","namespace":"gone","arguments":""},
			{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"r"}]},
			{"type":"function_call_output","call_id":"2","output":"s"}]`,
			`input[1] assistant thinks "a" calls(1) n__f {"x": 1} calls(2) gone__g ""` + "\ninput[3] tool(1) input_text:r\n" +
				`input[4] tool(2) "s"`},
		{"a call after text", `[{"role":"assistant","content":"b"},{"type":"function_call","call_id":"1","name":"f",` +
			`"arguments":"{}"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"c"}]},` +
			`{"type":"function_call","call_id":"2","name":"f","arguments":"{\"cut"}]`,
			"input[0] assistant \"b\" calls(1) f {}\ninput[3] assistant thinks \"c\" calls(2) f \"{\\\"cut\""},
		{"reasoning", `[{"type":"reasoning","encrypted_content":"gAAAA"},{"role":"assistant","content":"a"},` +
			`{"type":"reasoning","encrypted_content":"ingot:reasoning:own"},{"role":"assistant","content":"b"},` +
			`{"type":"reasoning","summary":null,"content":null},{"role":"assistant","content":"c"},` +
			`{"type":"reasoning","summary":[{"text":"lost"}]},{"role":"user","content":"d"},` +
			`{"role":"assistant","content":"e"}]`,
			"input[1] assistant \"a\"\ninput[3] assistant thinks \"own\" \"b\"\ninput[5] assistant \"c\"\n" +
				"input[7] user \"d\"\ninput[8] assistant \"e\""},
		{"a custom tool", `[{"type":"custom_tool_call","call_id":"1","name":"apply_patch","input":"*** Begin"},` +
			`{"type":"custom_tool_call_output","call_id":"1","output":"ok"}]`,
			`input[0] assistant calls(1) apply_patch {"input": "*** Begin"}` + "\n" + `input[1] tool(1) "ok"`},
		{"the local shell", `[{"type":"local_shell_call","id":"x","call_id":"1","status":"completed","action":` +
			`{"type":"exec","command":["ls"],"env":{}}},{"type":"local_shell_call_output","id":"1","output":"a b"}]`,
			`input[0] assistant calls(1) local_shell {"type": "exec", "command": ["ls"], "env": {}}` + "\n" +
				`input[1] tool(1) "a b"`},
		{"a shell", `[{"type":"shell_call","call_id":"1","action":{"commands":["ls"]}},{"type":"shell_call_output",` +
			`"call_id":"1","output":[{"stdout":"a","stderr":"b",` +
			`"outcome":{"type":"exit","exit_code":0}},{"stdout":"","stderr":"c",` +
			`"outcome":{"type":"exit","exit_code":2}},{"stdout":"","stderr":"","outcome":{"type":"timeout"}}]}]`,
			`input[0] assistant calls(1) shell {"commands": ["ls"]}` + "\n" +
				`input[1] tool(1) "abc\n(exit status 2)\n\n(timed out)\n"`},
		{"a patch", `[{"type":"apply_patch_call","call_id":"1","status":"completed","operation":{"type":"delete_file",` +
			`"path":"a"}},{"type":"apply_patch_call_output","call_id":"1","status":"failed"}]`,
			`input[0] assistant calls(1) apply_patch {"type": "delete_file", "path": "a"}` + "\n" +
				`input[1] tool(1) "failed"`},
		{"a screen", `[{"type":"computer_call","id":"x","call_id":"1","status":"completed","pending_safety_checks":[],` +
			`"action":{"type":"click","x":1}},{"type":"computer_call_output","call_id":"1","output":{"type":` +
			`"computer_screenshot","image_url":"data:x"}}]`,
			`input[0] assistant calls(1) computer {"action": {"type": "click", "x": 1}}` + "\n" +
				`input[1] tool(1) input_image:data:x`},
		{"what OpenAI searched", `[{"role":"user","content":"a"},{"type":"web_search_call","id":"w1","status":"completed",` +
			`"action":{"type":"search","query":"q"}},{"type":"file_search_call","id":"f0","queries":["q"],"results":null},` +
			`{"type":"file_search_call","id":"f1","queries":["q"],"results":[{"filename":"b.txt","text":"found"}]}]`,
			"input[0] user \"a\"\ninput[3] assistant calls(f1) file_search {\"queries\": [\"q\"]}\n" +
				`input[3] tool(f1) "b.txt:\nfound"`},
		{"what OpenAI ran", `[{"type":"code_interpreter_call","id":"c1","code":"1+1","outputs":[{"type":"logs","logs":"2"},` +
			`{"type":"image","url":"data:y"}]},{"type":"code_interpreter_call","id":"c2","code":null,"outputs":null},` +
			`{"type":"program","id":"p","call_id":"p1","code":"f()"},{"type":"program_output","call_id":"p1","result":"3"}]`,
			`input[0] assistant calls(c1) code_interpreter {"code": "1+1"}` + "\ninput[0] tool(c1) text:2 input_image:data:y\n" +
				`input[2] assistant calls(p1) program {"code": "f()"}` + "\n" + `input[3] tool(p1) "3"`},
		{"a picture that OpenAI made", `[{"type":"image_generation_call","id":"i1","revised_prompt":"a cat",` +
			`"result":"AAAA"},` +
			`{"type":"image_generation_call","id":"i2","result":null}]`,
			`input[0] assistant calls(i1) image_generation {"prompt": "a cat"}` + "\n" +
				`input[0] tool(i1) input_image:data:image;base64,AAAA`},
		{"MCP", `[{"type":"mcp_list_tools","id":"l","server_label":"s","tools":[]},{"type":"mcp_approval_request","id":"r",` +
			`"name":"t","arguments":"{}","server_label":"s"},{"type":"mcp_approval_response","approval_request_id":"r",` +
			`"approve":true},{"type":"mcp_call","id":"m1","server_label":"s","name":"t","arguments":"{\"a\":1}","output":"o"},` +
			`{"type":"mcp_call","id":"m2","server_label":"s","name":"t","arguments":"{}","error":{"code":1}}]`,
			`input[3] assistant calls(m1) s__t {"a": 1}` + "\n" + `input[3] tool(m1) "o"` + "\n" +
				`input[4] assistant calls(m2) s__t {}` + "\n" + `input[4] tool(m2) "error: {\"code\": 1}"`},
		{"a search for tools", `[{"type":"tool_search_call","call_id":"1","execution":"client","arguments":{"q":"x"}},` +
			`{"type":"tool_search_output","call_id":"1","execution":"client","tools":[{"type":"namespace","name":"m","tools":[` +
			`{"type":"function","name":"g"}]},{"type":"function","name":"h"}]},{"type":"tool_search_call","call_id":null,` +
			`"execution":"server","arguments":{}},{"type":"tool_search_output","execution":"server","tools":[]},` +
			`{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"k"}]}]`,
			`input[0] assistant calls(1) tool_search {"q": "x"}` + "\n" +
				`input[1] tool(1) "These tools can be called now: m__g, h"`},
		{"summaries", `[{"type":"compaction","encrypted_content":"gAAAA"},{"type":"context_compaction"},` +
			`{"type":"compaction_summary","encrypted_content":"ingot:summary:s"},{"type":"configuration_update"}]`,
			`input[2] user "Summary of the conversation so far:\n\ns"`},
		{"calls of the future", `[{"type":"dance_call","call_id":"1","step":{"n":2},"id":"d","status":"completed"},` +
			`{"type":"dance_call_output","call_id":"1","output":{"ok":true}},{"type":"hum_call","id":"h"},{"type":"mood"},` +
			`{"type":"dance_call_output","call_id":"2","output":[{"a":1}]}]`,
			`input[0] assistant calls(1) dance {"step": {"n": 2}}` + "\n" + `input[1] tool(1) "{\"ok\": true}"` + "\n" +
				`input[4] tool(2) "[{\"a\": 1}]"`},
		{"references", `[{"type":"item_reference","id":"known"},{"id":"known"}]`,
			"input[0] user \"stored known\"\ninput[1] user \"stored known\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := said(t, c.items)
			if got = strings.TrimSpace(got); got != c.want || err != nil {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

func TestBadItems(t *testing.T) {
	for text, want := range map[string]string{
		`7`:                                      "input: must be a text or a list of items",
		`{"a":1}`:                                "input: must be a text or a list of items",
		`[null]`:                                 "input[0]: null, want an object",
		`["a"]`:                                  "input[0]: a JSON string, want an object",
		`[{"role":"user"}]`:                      "input[0].content: is missing",
		`[{"role":"assistant"},{"content":"a"}]`: "input[1].role: is missing",
		`[{"role":"user","content":7}]`:          "input[0].content: want a string, an array of parts or null",
		`[{"role":"user","content":[7]}]`:        "input[0].content[0]: want an object",
		`[{"type":"additional_tools","tools":[{"type":"function"}]}]`: "input[0].tools[0].name: the tool's name is missing",
		`[{"type":"item_reference","id":"m"}]`: `input[0].id: no item "m" is stored: send the item itself, or let the ` +
			`server store responses with "store": true`,
	} {
		if _, err := said(t, text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestStoredForm(t *testing.T) {
	for text, want := range map[string]string{
		`{"role":"user","content":"a","id":"m1"}`: `{"role": "user", "content": [{"type": "input_text", "text": "a"}], ` +
			`"id": "m1", "type": "message", "status": "completed"}`,
		`{"role":"assistant","content":"a","id":"m1"}`: `{"role": "assistant", "content": [{"type": "output_text", ` +
			`"annotations": [], "text": "a"}], "id": "m1", "type": "message", "status": "completed"}`,
		`{"type":"function_call","id":"f1","arguments":"{}"}`: `{"type": "function_call", "id": "f1", "arguments": "{}"}`,
	} {
		it, err := Decode(json.RawMessage(text), "x")
		if err != nil {
			t.Fatal(err)
		}
		id, raw := it.Stored()
		if string(raw) != want || !strings.Contains(text, `"`+id+`"`) {
			t.Errorf("%s: %s, %s", text, id, raw)
		}
	}
	it, err := Decode(Message("user", "a"), "x")
	if err != nil {
		t.Fatal(err)
	}
	if id, raw := it.Stored(); !strings.HasPrefix(id, "item_") || !strings.Contains(string(raw), id) {
		t.Errorf("no id: %s, %s", id, raw)
	}
}

func TestCompacts(t *testing.T) {
	for text, want := range map[string]string{
		`[{"role":"user","content":"a"},{"type":"compaction_trigger"}]`: "1 true",
		`[{"type":"compaction_trigger"},{"role":"user","content":"a"}]`: "2 false",
		`[]`: "0 false",
	} {
		list, err := servertest.Decode[Input](t, text).Decode(nil)
		if err != nil {
			t.Fatal(err)
		}
		rest, compacts := Compacts(list)
		if got := fmt.Sprint(len(rest), compacts); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
