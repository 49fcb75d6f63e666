package chattest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Conversation is one that clients send.
type Conversation struct {
	Name     string
	Messages string // JSON in the form of OpenAI's chat completions API
	Shows    string // the words of the conversation that a prompt must show
	Tools    bool   // the request offers Tool
}

// Tool is what conversations with calls offer, in the form of OpenAI's chat completions API.
const Tool = `{"type":"function","function":{"name":"fnn1","description":"ddd","parameters":{"type":"object",` +
	`"properties":{"city":{"type":"string","description":"ddd"}},"required":["city"]}}}`

// quoted returns a text as JSON. The text null is null.
func quoted(text string) string {
	if text == "null" {
		return text
	}
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can be encoded
	}
	return string(b)
}

func message(role, content string) string {
	return fmt.Sprintf(`{"role":%q,"content":%s}`, role, content)
}

func u(text string) string { return message("user", quoted(text)) }
func a(text string) string { return message("assistant", quoted(text)) }
func s(text string) string { return message("system", quoted(text)) }

// parts is a message whose text is a part.
func parts(role, text string) string {
	return message(role, `[{"type":"text","text":`+quoted(text)+`}]`)
}

// ac is a message with a content and calls of fnn1, fnn2 and so on, with the ids call_1, call_2 and so on.
func ac(content string, arguments ...string) string {
	var calls []string
	for i, args := range arguments {
		calls = append(calls, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":"fnn%d","arguments":%s}}`,
			i+1, i+1, quotedAlways(args)))
	}
	return fmt.Sprintf(`{"role":"assistant","content":%s,"tool_calls":[%s]}`, quoted(content), strings.Join(calls, ","))
}

func quotedAlways(text string) string {
	if text == "null" {
		return `"null"`
	}
	return quoted(text)
}

// r is the result of a call.
func r(n int, text string) string {
	return fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%s}`, n, quoted(text))
}

func list(messages ...string) string { return "[" + strings.Join(messages, ",") + "]" }

// Conversations returns the shapes of conversations that clients send.
func Conversations() []Conversation {
	const paris, rome, oslo = `{"city": "Paris"}`, `{"city":"Rome"}`, `{"city":"Oslo"}`
	text := func(name, shows string, messages ...string) Conversation {
		return Conversation{name, list(messages...), shows, false}
	}
	call := func(name, shows string, messages ...string) Conversation {
		return Conversation{name, list(messages...), shows, true}
	}
	return []Conversation{
		text("one user", "uu1", u("uu1")),
		text("system first", "ss1 uu1", s("ss1"), u("uu1")),
		text("two systems first", "ss1 ss2 uu1", s("ss1"), s("ss2"), u("uu1")),
		text("three systems first", "ss1 ss2 ss3 uu1", s("ss1"), s("ss2"), s("ss3"), u("uu1")),
		text("system in the middle", "ss1 uu1 aa1 ss2 uu2", s("ss1"), u("uu1"), a("aa1"), s("ss2"), u("uu2")),
		text("system behind the first user", "uu1 ss1", u("uu1"), s("ss1")),
		text("system last", "uu1 aa1 uu2 ss1", u("uu1"), a("aa1"), u("uu2"), s("ss1")),
		text("system after the model", "uu1 aa1 ss1", u("uu1"), a("aa1"), s("ss1")),
		text("system between the model's", "uu1 aa1 ss1 aa2 uu2", u("uu1"), a("aa1"), s("ss1"), a("aa2"), u("uu2")),
		text("only a system", "ss1", s("ss1")),
		text("only systems", "ss1 ss2", s("ss1"), s("ss2")),
		text("two users", "uu1 uu2", u("uu1"), u("uu2")),
		text("system, three users", "ss1 uu1 uu2 uu3", s("ss1"), u("uu1"), u("uu2"), u("uu3")),
		text("two of the model", "uu1 aa1 aa2 uu2", u("uu1"), a("aa1"), a("aa2"), u("uu2")),
		text("greeting", "aa1 uu1", a("aa1"), u("uu1")),
		text("system, greeting", "ss1 aa1 uu1", s("ss1"), a("aa1"), u("uu1")),
		text("two greetings", "aa1 aa2 uu1", a("aa1"), a("aa2"), u("uu1")),
		text("the model last", "uu1 aa1", u("uu1"), a("aa1")),
		text("the model alone", "aa1", a("aa1")),
		text("system, the model alone", "ss1 aa1", s("ss1"), a("aa1")),
		text("empty answer", "uu1 uu2", u("uu1"), a(""), u("uu2")),
		text("null answer", "uu1 uu2", u("uu1"), a("null"), u("uu2")),
		text("null user", "", u("null")),
		text("empty user", "", u("")),
		text("empty system", "uu1", s(""), u("uu1")),
		text("parts", "ss1 uu1", parts("system", "ss1"), parts("user", "uu1")),
		text("parts and texts", "uu1 uu2 ss1", parts("user", "uu1"), u("uu2"), parts("system", "ss1")),
		text("empty parts", "", `{"role":"user","content":[]}`),
		call("call, null", "uu1 fnn1 city Paris rr1", u("uu1"), ac("null", paris), r(1, "rr1")),
		call("call, empty", "uu1 fnn1 city Paris rr1", u("uu1"), ac("", paris), r(1, "rr1")),
		call("call, text", "uu1 aa1 fnn1 Paris rr1", u("uu1"), ac("aa1", paris), r(1, "rr1")),
		call("result in parts", "uu1 fnn1 Paris rr1", u("uu1"), ac("null", paris),
			`{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"rr1"}]}`),
		call("calls", "uu1 fnn1 Paris fnn2 Rome rr1 rr2", u("uu1"), ac("null", paris, rome), r(1, "rr1"), r(2, "rr2")),
		call("calls, results in another order", "uu1 fnn1 Paris fnn2 Rome rr1 rr2", u("uu1"), ac("null", paris, rome),
			r(2, "rr2"), r(1, "rr1")),
		call("three calls, text", "uu1 aa1 fnn1 Paris fnn2 Rome fnn3 Oslo rr1 rr2 rr3", u("uu1"),
			ac("aa1", paris, rome, oslo), r(1, "rr1"), r(2, "rr2"), r(3, "rr3")),
		call("calls, one result", "uu1 fnn1 Paris fnn2 Rome rr1 uu2", u("uu1"), ac("null", paris, rome), r(1, "rr1"),
			u("uu2")),
		call("rounds", "uu1 fnn1 Paris rr1 aa1 Rome rr2 aa2 uu2", u("uu1"), ac("null", paris), r(1, "rr1"),
			ac("aa1", rome), r(1, "rr2"), a("aa2"), u("uu2")),
		call("user after the result", "uu1 fnn1 Paris rr1 uu2", u("uu1"), ac("null", paris), r(1, "rr1"), u("uu2")),
		call("system after the result", "ss1 uu1 fnn1 Paris rr1 ss2", s("ss1"), u("uu1"), ac("null", paris), r(1, "rr1"),
			s("ss2")),
		call("system between call and result", "uu1 fnn1 Paris rr1 ss2", u("uu1"), ac("null", paris), s("ss2"),
			r(1, "rr1")),
		call("call without a result", "uu1 fnn1 Paris uu2", u("uu1"), ac("null", paris), u("uu2")),
		call("call without a result, model", "uu1 fnn1 Paris aa1 uu2", u("uu1"), ac("null", paris), a("aa1"), u("uu2")),
		call("call last", "uu1 fnn1 Paris", u("uu1"), ac("null", paris)),
		call("call first", "fnn1 Paris rr1 uu1", ac("null", paris), r(1, "rr1"), u("uu1")),
		call("result without a call", "uu1 rr1", u("uu1"), r(9, "rr1")),
		call("result without a call, later", "uu1 aa1 rr1 uu2", u("uu1"), a("aa1"), r(9, "rr1"), u("uu2")),
		call("result first", "rr1 uu1", r(9, "rr1"), u("uu1")),
		text("history without tools", "uu1 fnn1 Paris rr1 uu2", u("uu1"), ac("null", paris), r(1, "rr1"), u("uu2")),
		text("calls in history without tools", "ss1 uu1 aa1 fnn1 Paris fnn2 Rome rr1 rr2 aa2 uu2", s("ss1"), u("uu1"),
			ac("aa1", paris, rome), r(1, "rr1"), r(2, "rr2"), a("aa2"), u("uu2")),
		call("empty result", "uu1 fnn1 Paris", u("uu1"), ac("null", paris), r(1, "")),
		call("cut arguments", "uu1 fnn1 Par rr1", u("uu1"), ac("", `{"city": "Par`), r(1, "rr1")),
		call("cut arguments, nested", "fnn1 Par rr1", u("uu1"), ac("", `{"a": [1, {"b": "Par\`), r(1, "rr1")),
		call("empty arguments", "uu1 fnn1 rr1", u("uu1"), ac("", ""), r(1, "rr1")),
		call("null arguments", "uu1 fnn1 rr1", u("uu1"), ac("", "null"), r(1, "rr1")),
		call("arguments of words", "uu1 fnn1 Paris rr1", u("uu1"), ac("", "Paris please"), r(1, "rr1")),
		call("arguments in a list", "uu1 fnn1 Paris rr1", u("uu1"), ac("", `["Paris"]`), r(1, "rr1")),
		call("arguments with quotes", "fnn1 rr1", u("uu1"), ac("", `{"city": "Par\"is\\ é"}`), r(1, "rr1")),
	}
}

// Texts returns the texts of all chat templates at hand by name: those of testdata below the root of the repository,
// and those of the folder that Variable names, or else of one beside the repository, if it exists.
func Texts(t testing.TB, root string) map[string]string {
	t.Helper()
	more := os.Getenv(Variable)
	if more == "" {
		more = filepath.Join(root, "..", "shared", "chat-templates")
	}
	texts := map[string]string{}
	for _, from := range []struct {
		pattern string
		text    func([]byte) string
	}{
		{filepath.Join(root, "testdata", "chat", "templates", "*.txt"), whole},
		{filepath.Join(root, "testdata", "real", "*.jinja"), whole},
		{filepath.Join(root, "testdata", "models", "*", "chat_template.jinja"), whole},
		{filepath.Join(root, "testdata", "models", "*", "tokenizer_config.json"), ofConfig},
		{filepath.Join(more, "templates", "*.txt"), whole},
	} {
		files, err := filepath.Glob(from.pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if text := from.text(data); text != "" {
				texts[filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f)] = text
			}
		}
	}
	if len(texts) < 30 {
		t.Fatalf("only %d templates in %s", len(texts), root)
	}
	return texts
}

func whole(b []byte) string { return string(b) }

// ofConfig returns the chat template of a tokenizer_config.json that has a single one.
func ofConfig(b []byte) (text string) {
	var c struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if json.Unmarshal(b, &c) == nil {
		_ = json.Unmarshal(c.Template, &text)
	}
	return text
}
