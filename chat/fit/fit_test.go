package fit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
)

// brief writes messages in a line.
func brief(list []chat.Message) string {
	var out []string
	for _, m := range list {
		text := m.Role[:1] + ":" + strings.ReplaceAll(m.Content, "\n", "/")
		if m.Null {
			text += "null"
		}
		for _, c := range m.ToolCalls {
			args, _ := jinja.EncodeJSON(c.Arguments)
			text += fmt.Sprintf("(%s %s)", c.Name, args)
		}
		out = append(out, text)
	}
	return strings.Join(out, " | ")
}

// What cannot stay is moved to the nearest place that the template accepts.
func TestFit(t *testing.T) {
	free := *anything()
	first := free
	first.System = First
	old := free // Gemma 2
	old.System, old.SystemOnly, old.Users, old.Assistants = Nowhere, false, false, false
	old.Offered, old.History = Calls{}, Calls{}
	single := free // Llama 3.1
	single.Offered.Several, single.Offered.Beside = false, false
	null := free // DeepSeek R1
	null.Offered.Null, null.Offered.Text = true, true
	gap := free
	gap.Offered.UserAfter, gap.Offered.Gap = false, true
	into := gap
	into.Offered.Gap = false
	closed := free
	closed.Offered.Open = false
	bot := free
	bot.Assistant = "bot"
	call := ac("aa", `{"k":1}`, `{"k":2}`)
	for _, c := range []struct {
		name  string
		shape Shape
		in    []chat.Message
		want  string
	}{
		{"as it is", free, []chat.Message{s("s"), u("u"), a("a"), s("t"), u("v")}, "s:s | u:u | a:a | s:t | u:v"},
		{"leading", free, []chat.Message{s("s"), s("t"), u("u")}, "s:s//t | u:u"},
		{"next user", first, []chat.Message{s("s"), u("u"), a("a"), s("t"), u("v")}, "s:s | u:u | a:a | u:t//v"},
		{"two for one user", first, []chat.Message{u("u"), a("a"), s("s"), s("t"), u("v")}, "u:u | a:a | u:s//t//v"},
		{"user before", first, []chat.Message{s("s"), u("u"), s("t")}, "s:s | u:u//t"},
		{"no user near", first, []chat.Message{u("u"), a("a"), s("t"), a("b"), u("v")}, "u:u | a:a | u:t | a:b | u:v"},
		{"old", old, []chat.Message{s("s"), u("u"), u("v"), a("a"), a("b"), u("w")}, "u:s//u//v | a:a//b | u:w"},
		{"old greeting", old, []chat.Message{a("a"), u("u")}, "u: | a:a | u:u"},
		{"old greeting with system", old, []chat.Message{s("s"), a("a"), u("u")}, "u:s | a:a | u:u"},
		{"old system", old, []chat.Message{s("s")}, "u:s"},
		{"old call", old, []chat.Message{u("u"), ac("null", `{"k":1}`), r(1, "r"), u("v")},
			`u:u | a:{"name": "fnn1", "arguments": {"k": 1}} | u:Result of fnn1://r//v`},
		{"single", single, []chat.Message{u("u"), call, r(2, "q"), r(1, "r")},
			`u:u | a:aa | a:(fnn1 {"k": 1}) | t:r | a:(fnn2 {"k": 2}) | t:q`},
		{"null", null, []chat.Message{u("u"), ac("", `{"k":1}`), r(1, "r")}, `u:u | a:null(fnn1 "{\"k\":1}") | t:r`},
		{"gap", gap, []chat.Message{u("u"), ac("", `{"k":1}`), r(1, "r"), u("v")},
			`u:u | a:(fnn1 {"k": 1}) | t:r | a: | u:v`},
		{"into the result", into, []chat.Message{u("u"), ac("", `{"k":1}`), r(1, "r"), u("v")},
			`u:u | a:(fnn1 {"k": 1}) | t:r//v`},
		{"result that is missing", closed, []chat.Message{u("u"), ac("", `{"k":1}`), u("v")},
			`u:u | a:(fnn1 {"k": 1}) | t: | u:v`},
		{"bot", bot, []chat.Message{u("u"), a("a")}, "u:u | b:a"},
	} {
		if got := brief(c.shape.Fit(c.in, true)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Arguments of any form become an object, and what a limit cut off is kept.
func TestArguments(t *testing.T) {
	for _, c := range [][2]string{
		{`{"a": 1}`, `{"a": 1}`},
		{``, `{}`},
		{`  `, `{}`},
		{`null`, `{}`},
		{`{`, `{}`},
		{`{"a`, `{"a": null}`},
		{`{"a"`, `{"a": null}`},
		{`{"a":`, `{"a": null}`},
		{`{"a": 1,`, `{"a": 1}`},
		{`{"a": tr`, `{"a": true}`},
		{`{"a": fals`, `{"a": false}`},
		{`{"a": nul`, `{"a": null}`},
		{`{"a": -`, `{"a": 0}`},
		{`{"a": 1.`, `{"a": 1.0}`},
		{`{"a": "Par`, `{"a": "Par"}`},
		{`{"a": "Par\`, `{"a": "Par"}`},
		{`{"a": "Par\u00`, `{"a": "Par"}`},
		{`{"a": "Par\\u00`, `{"a": "Par\\u00"}`},
		{`{"a": [1, {"b": "c`, `{"a": [1, {"b": "c"}]}`},
		{`{"a": 1}}`, `{"arguments": "{\"a\": 1}}"}`},
		{`[1]`, `{"arguments": "[1]"}`},
		{`"text"`, `{"arguments": "\"text\""}`},
		{`words`, `{"arguments": "words"}`},
	} {
		got, err := jinja.EncodeJSON(arguments(chat.NewCall("1", "f", c[0])))
		if err != nil || got != c[1] {
			t.Errorf("%s: got %s, want %s (%v)", c[0], got, c[1], err)
		}
	}
	for _, v := range []jinja.Value{nil, (*jinja.Dict)(nil)} {
		if d := arguments(chat.ToolCall{Arguments: v}); d == nil || d.Len() != 0 {
			t.Errorf("%v: %v", v, d)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, text := range []string{`{"a": [1, "b`, `{"\u12`, `[[[`, `"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if arguments(chat.NewCall("1", "f", text)) == nil {
			t.Error("no object")
		}
	})
}

func TestShortIDs(t *testing.T) {
	for id, same := range map[string]bool{"abcDEF123": true, "": true, "call_1": false, "abcdefgh-": false} {
		got := shortID(id)
		if (got == id) != same || id != "" && len(got) != 9 || shortID(got) != got {
			t.Errorf("%q: %q", id, got)
		}
	}
	if shortID("call_1") == shortID("call_2") {
		t.Error("different ids are equal")
	}
}

// The nearest level that a template has is chosen, and none where it has none.
func TestThink(t *testing.T) {
	const loop = `{% for m in messages %}{{ m.content }}{% endfor %}`
	for _, c := range []struct{ name, template, requested, want string }{
		{"Qwen 3.8", loop + `{% if reasoning_effort is defined and reasoning_effort not in ["xhigh","medium","low"] %}` +
			`{{ raise_exception("no") }}{% endif %}{% if enable_thinking %}t{% endif %}`,
			"minimal low medium high xhigh max true false", "low low medium xhigh xhigh xhigh - -"},
		{"printed", loop + `{{ reasoning_effort }}`, "minimal low high xhigh max true false", "low low high high high - low"},
		{"none and high", loop + `{% if reasoning_effort == "high" %}h` +
			`{% elif reasoning_effort | default("none") != "none" %}` +
			`{{ raise_exception("no") }}{% endif %}`, "minimal low medium high max true false",
			"high high high high high high none"},
		{"only max", loop + `{% if reasoning_effort == "max" %}m{% endif %}`, "minimal low high xhigh max",
			"low low high high max"},
		{"nothing", loop, "minimal low high max true false", "- - - - - -"},
	} {
		compiled, err := chat.Parse(t.Context(), c.template)
		if err != nil {
			t.Fatal(err)
		}
		shape, err := Probe(t.Context(), renderer(compiled))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, requested := range strings.Fields(c.requested) {
			on := requested != "false"
			q := chat.Request{Think: &on}
			if requested != "true" && requested != "false" {
				q.ThinkLevel = requested
			}
			shape.Think(&q)
			if q.ThinkLevel == "" {
				q.ThinkLevel = "-"
			}
			got = append(got, q.ThinkLevel)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got %s, want %s\n%+v", c.name, text, c.want, shape.Thinking)
		}
	}
}

// Of a template that takes too long or refuses everything, nothing is known. Other errors end the probing.
func TestProbeFails(t *testing.T) {
	slow, err := chat.Parse(t.Context(), `{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := Probe(t.Context(), renderer(slow))
	if err != nil || !reflect.DeepEqual(shape, anything()) {
		t.Errorf("%+v: %v", shape, err)
	}
	busy, n := errors.New("busy"), 0
	_, err = Probe(t.Context(), func(context.Context, chat.Request) (string, error) { n++; return "", busy })
	if err != busy || n != 1 {
		t.Errorf("%v after %d renders", err, n)
	}
}
