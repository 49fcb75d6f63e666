package server_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/all"
	"github.com/ingotml/ingot/server/servertest"
)

// strictTemplate accepts turns of a user and the model that alternate, and nothing else.
const strictTemplate = `{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) or m.tool_calls %}` +
	`{{ raise_exception('no') }}{% endif %}{{ m.role }}:{{ m.content }}|{% endfor %}`

// repeated is a request with a unit that is repeated: # in it is its number.
type repeated struct{ name, path, before, unit, after string }

func (q repeated) body(n int) string {
	var b strings.Builder
	b.WriteString(q.before)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(q.unit, "#", fmt.Sprint(i)))
	}
	b.WriteString(q.after)
	return b.String()
}

// repeatedRequests repeats everything that a request may have many of.
func repeatedRequests(model string) (list []repeated) {
	const chat, responses, messages, ollama = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"
	text := strings.Repeat("x", 100)
	head := `{"model":"` + model + `","max_tokens":1,"stream":false,`
	add := func(name, path, before, unit, after string) {
		list = append(list, repeated{path + " " + name, path, head + before, unit, after + "}"})
	}
	user, said := `{"role":"user","content":"`+text+`"}`, `{"role":"assistant","content":"`+text+`"}`
	for _, path := range []string{chat, messages, ollama, "/v1/tokenize", "/v1/messages/count_tokens"} {
		for name, unit := range map[string]string{
			"of the user": user, "of the model": said, "of the system": `{"role":"system","content":"` + text + `"}`,
			"turns":   user + "," + said,
			"results": `{"role":"tool","tool_call_id":"c#","content":"` + text + `"}`,
			"calls and results": `{"role":"assistant","tool_calls":[{"id":"c#","type":"function","function":{"name":"f",` +
				`"arguments":{"k":#}}}]},{"role":"tool","tool_call_id":"c#","content":"` + text + `"}`,
		} {
			add("messages "+name, path, `"messages":[`+user+",", unit, "]")
		}
		add("keys of a message", path, `"messages":[{"role":"user","content":"x",`, `"k#":#`, "}]")
		add("calls of a message", path, `"messages":[`+user+`,{"role":"assistant","content":"x","tool_calls":[`,
			`{"id":"c#","type":"function","function":{"name":"f","arguments":{"k":"`+text+`"}}}`, `]},`+user+"]")
		add("keys of a call", path, `"messages":[`+user+`,{"role":"assistant","content":"x","tool_calls":[`+
			`{"id":"c","type":"function","function":{"name":"f","arguments":{`, `"k#":"`+text+`"`, `}}}]},`+user+"]")
		add("tools", path, `"messages":[`+user+`],"tools":[`, `{"type":"function","name":"f#","input_schema":{},`+
			`"function":{"name":"f#","parameters":{}}}`, "]")
		add("tools of a name", path, `"messages":[`+user+`],"tools":[`,
			`{"type":"custom","custom":{"name":"f"},"name":"f"}`, "]")
		add("keys of a schema", path, `"messages":[`+user+`],"tools":[{"type":"function","name":"f","input_schema":{`+
			`"type":"object"},"function":{"name":"f","parameters":{"type":"object","properties":{`,
			`"k#":{"type":"string"}`, "}}}}]")
		add("keys", path, `"messages":[`+user+`],`, `"k#":#`, "")
		add("stop texts", path, `"messages":[`+user+`],"stop":[`, `"s#"`, "]")
		add("stop sequences", path, `"messages":[`+user+`],"stop_sequences":[`, `"s#"`, "]")
		add("biases", path, `"messages":[`+user+`],"logit_bias":{`, `"#":1`, "}")
		add("pictures", path, `"messages":[{"role":"user","content":"x","images":[`, `"x"`, "]}]")
	}
	part := func(kind, more string) string { return `{"type":"` + kind + `",` + more + `"text":"` + text + `"}` }
	for _, path := range []string{chat, messages} {
		for _, role := range []string{"user", "assistant", "system", "tool"} {
			for name, unit := range map[string]string{
				"text": part("text", ""), "thinking": part("thinking", `"thinking":"`+text+`",`), "refusal": part("refusal", ""),
				"unknown": part("none", ""), "mixed": part("text", "") + "," + part("file", ""),
				"results":    `{"type":"tool_result","tool_use_id":"c#","content":"` + text + `"}`,
				"calls":      `{"type":"tool_use","id":"c#","name":"f","input":{}}`,
				"references": `{"type":"tool_reference","tool_name":"f#"}`,
				"additions":  `{"type":"tool_addition","tool":{"name":"f#","definition":{"name":"f#","input_schema":{}}}}`,
				"marked":     part("text", `"cache_control":{"type":"ephemeral"},`),
				"search":     `{"type":"search_result","title":"t","source":"s","content":[` + part("text", "") + "]}",
				"summaries":  `{"type":"compaction","content":"` + text + `"}`,
			} {
				add("parts of "+role+" "+name, path, `"messages":[`+user+`,{"role":"`+role+`","tool_call_id":"c","content":[`, unit,
					`]},`+said+","+user+"]")
			}
		}
	}
	add("system", messages, `"messages":[`+user+`],"system":[`, part("text", ""), "]")
	add("parts of a result", messages, `"messages":[`+user+`,{"role":"user","content":[{"type":"tool_result",`+
		`"tool_use_id":"c","content":[`, part("text", ""), "]}]}]")
	add("lines of a result", messages, `"messages":[`+user+`,{"role":"assistant","content":[{"type":"bash_code_result",`+
		`"lines":[`, `"`+text+`"`, "]}]}]")
	for _, path := range []string{responses, "/v1/responses/input_tokens", "/v1/responses/compact"} {
		for name, unit := range map[string]string{
			"user": user, "assistant": said, "reasoning": `{"type":"reasoning","content":"` + text + `"}`,
			"summaries": `{"type":"reasoning","summary":[` + part("summary_text", "") + `]}`,
			"calls":     `{"type":"function_call","call_id":"c#","name":"f","arguments":"{\"k\":1}"}`,
			"results":   `{"type":"function_call_output","call_id":"c#","output":"` + text + `"}`,
			"calls and results": `{"type":"function_call","call_id":"c#","name":"f","arguments":"{}"},` +
				`{"type":"function_call_output","call_id":"c#","output":"` + text + `"}`,
			"actions": `{"type":"shell_call","call_id":"c#","action":{"k":1}}`, "compacted": `{"type":"compaction",` +
				`"encrypted_content":"ingot:summary:` + text + `"}`,
			"references": `{"type":"item_reference","id":"i#"}`, "unknown": `{"type":"none"}`,
			"tools": `{"type":"additional_tools","tools":[{"type":"custom","name":"f"}]}`,
		} {
			add("items "+name, path, `"input":[`+user+",", unit, ","+user+"]")
		}
		for _, kind := range []string{"input_text", "output_text", "reasoning_text", "refusal"} {
			for _, role := range []string{"user", "assistant"} {
				add("parts of "+role+" "+kind, path, `"input":[{"role":"`+role+`","content":[`, part(kind, ""), "]},"+user+"]")
			}
		}
		for _, member := range []string{"summary", "content"} {
			add("parts of reasoning, "+member, path, `"input":[{"type":"reasoning","`+member+`":[`, part("summary_text", ""),
				"]},"+said+","+user+"]")
		}
		add("outputs of a shell", path, `"input":[`+user+`,{"type":"shell_call_output","call_id":"c","output":[`,
			`{"stdout":"`+text+`","outcome":{"type":"exit","exit_code":1}}`, "]}]")
		add("outputs of code", path, `"input":[`+user+`,{"type":"code_interpreter_call","id":"c","code":"x","outputs":[`,
			`{"type":"logs","logs":"`+text+`"}`, "]}]")
		add("results of a search", path, `"input":[`+user+`,{"type":"file_search_call","id":"c","results":[`,
			`{"filename":"x","text":"`+text+`"}`, "]}]")
		add("metadata", path, `"input":"x","metadata":{`, `"k#":"v"`, "}")
		add("tools", path, `"input":"x","tools":[`, `{"type":"function","name":"f#","parameters":{}}`, "]")
		add("tools of a name", path, `"input":"x","tools":[`, `{"type":"custom","name":"f"}`, "]")
		add("tools of a namespace", path, `"input":"x","tools":[{"type":"namespace","name":"n","tools":[`,
			`{"type":"custom","name":"f"}`, "]}]")
		add("other tools", path, `"input":"x","tools":[`, `{"type":"web_search#"}`, "]")
		add("choice", path, `"input":"x","tools":[{"type":"custom","name":"f"}],"tool_choice":{"type":"allowed_tools",`+
			`"mode":"auto","tools":[`, `{"type":"custom","name":"f"}`, "]}")
	}
	for _, path := range []string{"/v1/completions", "/api/generate", "/v1/embeddings", "/api/embed"} {
		for _, member := range []string{"prompt", "input"} {
			add(member+" of texts", path, `"`+member+`":[`, `"x"`, "]")
			add(member+" of ids", path, `"`+member+`":[`, "1", "]")
			add(member+" of lists", path, `"`+member+`":[`, "[1]", "]")
		}
		add("stop texts", path, `"prompt":"x","stop":[`, `"s#"`, "]")
		add("options", path, `"prompt":"x","options":{`, `"k#":1`, "}")
		add("schema", path, `"prompt":"x","format":{"type":"object","properties":{`, `"k#":{"type":"string"}`, "}}")
		add("enum", path, `"prompt":"x","format":{"enum":[`, `"k#"`, "]}")
	}
	add("ids", "/v1/detokenize", `"tokens":[`, "1", "]")
	add("token texts", "/v1/tokenize", `"return_token_strs":true,"prompt":"`, "x", `"`)
	add("messages of an image", "/api/create", `"messages":[`, user, "]")
	add("files", "/api/create", `"files":{`, `"f#":"sha256:0"`, "}")
	add("parameters", "/api/create", `"parameters":{`, `"k#":1`, "}")
	add("licenses", "/api/create", `"license":[`, `"`+text+`"`, "]")
	add("schema", "/v1/schema/check", `"schema":{"type":"object","properties":{`, `"k#":{"type":"string"}`, "}}")
	return list
}

// onceQuadratic are the names of requests that were, which every run has.
var onceQuadratic = []string{
	"/v1/chat/completions parts of user text", "/v1/chat/completions parts of assistant thinking",
	"/v1/chat/completions tools of a name", "/v1/responses items reasoning", "/v1/responses items references",
	"/v1/chat/completions messages of the user", "/v1/chat/completions calls of a message",
}

// The time that a request takes grows as the request does, whatever it has many of, and whether it is refused or not.
// The work of models is not counted.
func TestRequestsAreLinear(t *testing.T) {
	f := servertest.New(t, func(o *server.Options) {
		servertest.Create(t, o.Store, "strict", modelfile.Command{Name: modelfile.Template, Value: strictTemplate})
	}, all.APIs...)
	defer f.Close()
	every := runtest.Pick(11, 1)
	for i, model := range []string{"talk", "strict"} {
		list := repeatedRequests(model)
		slices.SortFunc(list, func(a, b repeated) int { return strings.Compare(a.name, b.name) })
		for j, q := range list {
			if (i+j)%every != 0 && !slices.Contains(onceQuadratic, q.name) {
				continue
			}
			t.Run(model+q.name, func(t *testing.T) {
				runtest.Linear(t, 2500, func(n int) func() {
					r := httptest.NewRequest("POST", "http://localhost"+q.path, strings.NewReader(q.body(n)))
					w := httptest.NewRecorder()
					return func() {
						f.ServeHTTP(w, r)
						if w.Code >= 500 {
							t.Errorf("status %d: %.200s", w.Code, w.Body)
						}
					}
				})
			})
		}
	}
}
