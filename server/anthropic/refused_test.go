package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/pdf"
)

func TestMessagesRefused(t *testing.T) {
	f := serve(t, nil)
	const hi = `"messages":[{"role":"user","content":"Hi"}]`
	content := func(block string) string { return `"messages":[{"role":"user","content":[` + block + `]}]` }
	for body, want := range map[string]string{
		`"messages":[]`:         "messages",
		`"messages":"x"`:        "messages",
		`"max_tokens":-1,` + hi: "max_tokens",
		`"messages":[{"role":"robot","content":"x"}]`:                             "messages.0.role",
		content(`{"type":"image","source":{"type":"base64","data":"AAAA"}}`):      "0.content.0: this model cannot see",
		content(`{"type":"document"}`):                                            "0.source: the source is missing",
		content(`{"type":"document","source":{"type":"base64","data":"AAAA"}}`):   "0.source: not a readable PDF file",
		content(`{"type":"document","source":{"type":"base64","data":"!"}}`):      "0.source: the data are not valid base64",
		content(`{"type":"document","source":{"type":"url","url":"http://a/b"}}`): "0.source: the server does not fetch",
		content(`{"type":"document","source":{"type":"file","file_id":"f"}}`):     "0.source: the server stores no files",
		content(`{"type":"document","source":{"type":"tape"}}`):                   `0.source: the type \"tape\" is not`,
		content(`{"type":"text","text":"a"},{"type":"server_tool_use"}`):          `messages.0.content.1.type: block type`,
		content(`{"type":"tool_use","id":"x","name":"f","input":{}}`):             "messages.0.content.0.type: block type",
		content(`{"type":"container_upload","file_id":"f"}`):                      "messages.0.content.0.file_id: the server",
		content(`{"type":"text","text":5}`):                                       "text: a JSON number 5, want a string",
		content(`{"text":"x"}`):                                                   "0.content.0: the block has no type",
		content(`[]`):                                                             "0.content.0: the block is no object",
		content(`{"type":"tool_reference","tool_name":"f"}`):                      `tool_name: no tool is named \"f\"`,
		`"mcp_servers":[{"url":"https://a"}],` + hi:                               "mcp_servers: the server connects to",
		`"thread":{"type":"continue"},` + hi:                                      "thread: conversations are not stored",
		`"compaction":{"type":"summarize"},` + hi:                                 "compaction: is not supported",
		`"tools":[{"name":"f","input_schema":[]}],` + hi:                          "tools.0.input_schema",
		`"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"},` +
			hi: `tool_choice.name: \"web_search\" is a tool that Anthropic runs (web_search_20250305)`,
		`"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"any"},` +
			hi: "tool_choice: the request has no tools but",
		`"system":[[]],` + hi:                                                       "system.0: the block is no object",
		`"tools":[{"input_schema":{}}],` + hi:                                       "tools.0.name",
		`"tool_choice":{"type":"any"},` + hi:                                        "the request has no tools",
		`"tool_choice":{"type":"tool","name":"g"},` + hi:                            `no tool is named \"g\"`,
		`"tool_choice":{"type":"sometimes"},` + hi:                                  "tool_choice.type",
		`"output_config":{"format":{"type":"xml"}},` + hi:                           "output_config.format",
		`"stop_sequences":["` + strings.Repeat("x", limits.StopText+1) + `"],` + hi: "stop_sequences.0: has 4097 bytes",
		`"stop_sequences":["a"` + strings.Repeat(`,"a"`, limits.Stops) + `],` + hi:  "stop_sequences: has 65 texts",
		content(`{"type":"text","text":"` + strings.Repeat("word ", 600) + `"}`):    "prompt is too long: ",
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

// blind is the reader of a model without vision.
var blind = reader{
	note: func(newest bool) (string, error) {
		if newest {
			return "", errors.New("this model cannot see pictures")
		}
		return "[image omitted]", nil
	},
	pdf: func([]byte) (string, error) { return "", pdf.ErrNoText },
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
	for _, file := range []string{"blocks.json", "shapes.json"} {
		for _, c := range cases(f, file) {
			messages := string(c.Messages)
			if messages == "" {
				messages = `[{"role":"user","content":[` + string(c.Block) + `]},{"role":"user","content":"x"}]`
			}
			f.Add([]byte(`{"tools":[{"type":"bash_20250124"},{"name":"f","defer_loading":true}],"messages":` + messages + `}`))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var q messagesRequest
		if json.Unmarshal(body, &q) != nil {
			return
		}
		c, tools, err := q.conversation(plainStyle, blind)
		hasText := slices.ContainsFunc(q.Messages, func(m messageParam) bool {
			return slices.ContainsFunc(m.Content, func(b contentBlock) bool { return b.Type == textBlock && b.Text != "" })
		})
		if err == nil && len(c.Messages) == 0 && hasText {
			t.Errorf("no messages from %s", body)
		}
		if _, err := tools.use(q.ToolChoice); err == nil {
			_, _ = q.format()
		}
	})
}
