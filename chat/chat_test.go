package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
)

const conversation = `[
	{"role": "system", "content": "Be brief."},
	{"role": "user", "content": [{"type": "text", "text": "Weather "}, {"type": "image"},
		{"type": "text", "text": "in Rome?"}]},
	{"role": "assistant", "content": null, "reasoning": "hm", "tool_calls": [{"id": "c1", "type": "function",
		"function": {"name": "weather", "arguments": "{\"place\": \"Rome\", \"days\": 2}"}}]},
	{"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "21"},
	{"role": "user", "content": "And now?", "note": 5}]`

const tools = `[{"type": "function", "function": {"name": "weather", "description": "It",
	"parameters": {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": ["integer", "null"]}},
		"required": ["place"]}}}]`

func request(t *testing.T) chat.Request {
	t.Helper()
	r := chat.Request{AddGenerationPrompt: true, BOS: "<s>", EOS: "</s>"}
	if err := json.Unmarshal([]byte(conversation), &r.Messages); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(tools), &r.Tools); err != nil {
		t.Fatal(err)
	}
	return r
}

func render(t *testing.T, text string, r chat.Request) (string, error) {
	t.Helper()
	tmpl, err := chat.Parse(context.Background(), text)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl.Render(context.Background(), r)
}

func TestRender(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name, text, want string
		change           func(*chat.Request)
	}{
		{"messages", "{{ bos_token }}{% for m in messages %}{{ m.role }}" +
			":{{ m.content if m.content is string or m.content is none else m.content|length }};{% endfor %}" +
			"{{ add_generation_prompt }}",
			"<s>system:Be brief.;user:3;assistant:None;tool:21;user:And now?;True", nil},
		{"tool calls", "{{ messages[2].tool_calls[0]|tojson }}{{ messages[2].reasoning_content }}" +
			"{{ messages[2].content is none }}{{ messages[3].tool_call_id }}{{ messages[4].note }}",
			`{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": {"place": "Rome", "days": 2}}}` +
				`hmTruec15`, nil},
		{"tools", "{{ tools[0].function.parameters.properties|tojson }}",
			`{"place": {"type": "string"}, "days": {"type": ["integer", "null"]}}`, nil},
		{"no tools", "{{ tools is none }}{{ documents is none }}{{ enable_thinking is defined }}", "TrueTrueFalse",
			func(r *chat.Request) { r.Tools = nil }},
		{"think", "{{ enable_thinking }}{{ reasoning_effort }}", "Truehigh",
			func(r *chat.Request) { r.Think, r.ThinkLevel = &yes, "high" }},
		{"extra", "{{ custom }}{{ bos_token }}", "5B", func(r *chat.Request) {
			r.Extra = jinja.NewDict()
			_ = r.Extra.Set("custom", int64(5))
			_ = r.Extra.Set("bos_token", "B")
		}},
		{"go turns", "{{ if .System }}<s>{{ .System }}</s>{{ end }}{{ if .Prompt }}<u>{{ .Prompt }}</u>{{ end }}<a>" +
			"{{ .Response }}</a>",
			"<s>Be brief.</s><u>Weather in Rome?</u><a>Yes.</a><u>And now?</u><a>", func(r *chat.Request) {
				r.Messages[2].Content = "Yes."
				r.Messages = append(r.Messages[:3], r.Messages[4])
			}},
		{"go without response", "{{ .Prompt }}|", "And now?|", func(r *chat.Request) { r.Messages = r.Messages[4:] }},
		{"go continues an answer", "[{{ .Prompt }}]{{ .Response }}.", "[And now?]Well", func(r *chat.Request) {
			r.Messages = append(r.Messages[4:], chat.Message{Role: "assistant", Content: "Well"})
		}},
		{"go messages", "{{ .System }}{{ range $i, $m := .Messages }}{{ if eq $m.Role \"user\" }}({{ $m.Content }}" +
			"){{ end }}{{ range .ToolCalls }}{{ .Function.Name }}{{ .Function.Arguments }}{{ end }}{{ end }}",
			`Be brief.(Weather in Rome?)weather{"days":2,"place":"Rome"}(And now?)`, nil},
		{"go tools", "{{ range .Messages }}{{ end }}{{ range .Tools }}{{ .Function.Name }} {{ json .Function.Parameters }}" +
			" {{ range $k, $v := .Function.Parameters.Properties }}{{ $k }}: {{ toTypeScriptType $v }};{{ end }}{{ end }}",
			`weather {"type":"object","properties":{"place":{"type":"string"},"days":{"type":["integer","null"]}}` +
				`,"required":["place"]} days: number | null;place: string;`, nil},
		{"go date", "{{ .Prompt }}{{ currentDate }}", "And now?2026-01-02", func(r *chat.Request) {
			r.Messages = r.Messages[4:]
			r.Options.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
		}},
		{"go suffix", "{{ if .Suffix }}<pre>{{ .Prompt }}<suf>{{ .Suffix }}<mid>{{ else }}{{ .Prompt }}{{ end }}",
			"<pre>And now?<suf>end<mid>", func(r *chat.Request) { r.Suffix = "end" }},
		{"go unset", "{{ .Prompt }}[{{ .System }}{{ .Suffix }}{{ .ThinkLevel }}]{{ .Response }}", "And now?[]",
			func(r *chat.Request) { r.Messages = r.Messages[4:] }},
		{"go think", "{{ range .Messages }}{{ .Thinking }}{{ end }}{{ .IsThinkSet }}{{ .Think }}{{ .ThinkLevel }}",
			"hmtruetruelow", func(r *chat.Request) { r.ThinkLevel = "low" }},
	} {
		r := request(t)
		if c.change != nil {
			c.change(&r)
		}
		got, err := render(t, c.text, r)
		if err != nil || got != c.want {
			t.Errorf("%s:\n got  %q, %v\n want %q", c.name, got, err, c.want)
		}
	}
}

func TestMessageJSON(t *testing.T) {
	var m []chat.Message
	if err := json.Unmarshal([]byte(conversation), &m); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(m[2])
	want := `{"role":"assistant","content":null,"reasoning_content":"hm","thinking":"hm","tool_calls":[{"id":"c1",` +
		`"type":"function",` +
		`"function":{"name":"weather","arguments":{"place":"Rome","days":2}}}]}`
	if err != nil || string(b) != want {
		t.Errorf("got %s, %v\nwant %s", b, err, want)
	}
	for _, bad := range []string{`{}`, `{"role": "user", "content": 5}`, `{"role": "user", "content": ["x"]}`,
		`{"role": "assistant", "tool_calls": 1}`, `{"role": "assistant", "tool_calls": [1]}`,
		`{"role": "assistant", "tool_calls": [{"function": 1}]}`} {
		if err := json.Unmarshal([]byte(bad), new(chat.Message)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestSyntax(t *testing.T) {
	if _, err := chat.Parse(context.Background(), "{{ .Prompt "); !errors.Is(err, chat.ErrTemplate) {
		t.Errorf("got %v, want ErrTemplate", err)
	}
}

func TestLanguage(t *testing.T) {
	for _, c := range []struct {
		text, want string // want: the output or the error
		err        error
	}{
		{"{{ .Prompt }}", "And now?", nil},
		{"{{ messages[4].content }}", "And now?", nil},
		{"{{ .Prompt", "unclosed action", chat.ErrTemplate},
		{"{{ if .System }}x", "unexpected EOF", chat.ErrTemplate}, // in Jinja this is a variable called "if"
		{"{{ if .System }}{{ .Prompt }}{{ end", "unclosed action", chat.ErrTemplate},
		{"{{ .Prompt }}{{ end }}", "unexpected {{end}}", chat.ErrTemplate},
		{"{{ end }}", "unexpected {{end}}", chat.ErrTemplate},
		{"{{/* why", "unclosed comment", chat.ErrTemplate},
		{"{{ not tools }}", "False", nil},
		{"{{ printf \"%d\" 5 }}", "5", nil},
		{"{% raw %}{{ .Prompt {% endraw %}", "{{ .Prompt ", nil},
		{"{% if tools %}{{ .Prompt }}{% endif %}", "unexpected '.'", jinja.ErrSyntax},
		{"{%- if tools %}{{ messages[4].content }}", "template line 1", jinja.ErrSyntax},
	} {
		var got string
		tmpl, err := chat.Parse(context.Background(), c.text)
		if err == nil {
			r := request(t)
			if strings.HasPrefix(c.text, "{{ .") || strings.HasPrefix(c.text, "{{ printf") {
				r.Messages = r.Messages[4:]
			}
			got, err = tmpl.Render(context.Background(), r)
		}
		if err != nil {
			got = err.Error()
		}
		if !errors.Is(err, c.err) || c.err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// Parse and Render neither panic nor hang, whatever the text.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"{{ .System }}{{ range .Messages }}{{ .Role }}{{ end }}",
		"{% for m in messages %}{{ m.content }}{% endfor %}",
		"{{ if .Response }}{{ .Response }}{{ else }}{{ with .Prompt }}{{ . }}{{ end }}{{ end }}",
		"{{ define \"x\" }}{{ . }}{{ end }}{{ template \"x\" .Tools }}"} {
		f.Add(s)
	}
	var r chat.Request
	if err := json.Unmarshal([]byte(conversation), &r.Messages); err != nil {
		f.Fatal(err)
	}
	r.Options.Limits = jinja.Limits{Steps: 100_000, Memory: 4 << 20, Output: 1 << 20}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := chat.Parse(context.Background(), text)
		if err != nil {
			return
		}
		if out, err := tmpl.Render(context.Background(), r); err == nil && len(out) > 2<<20 {
			t.Errorf("%d bytes", len(out))
		}
	})
}

// What counts the work of a Go template is not seen in its errors.
func TestGoTemplateErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{{index "abc" 1000}}{{.Prompt}}`:        `<index "abc" 1000>: error calling index`,
		`{{lt .Prompt .Think}}`:                  `<lt (.Prompt) (.Think)>: error calling lt: incompatible types`,
		`{{range .Prompt}}{{end}}`:               `<.Prompt>: range can't iterate over Hi`,
		`{{index .Prompt .None | eq .Prompt 3}}`: `error calling index`,
	} {
		tmpl, err := chat.Parse(t.Context(), text)
		if err == nil {
			_, err = tmpl.Render(t.Context(), chat.Request{Messages: []chat.Message{{Role: "user", Content: "Hi"}}})
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ingot") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
