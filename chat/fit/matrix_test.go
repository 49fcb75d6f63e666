package fit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/limits"
)

// published has the chat templates of well-known models, beside the repository.
const published = "../../../shared/chat-templates/templates"

// templates returns all chat templates at hand by name: those of fixtures, those of the program, and the published ones
// where they are at hand.
func templates(t *testing.T) map[string]chat.Template {
	t.Helper()
	texts := map[string]string{
		"deepseek3.2": chat.BuiltIn("deepseek3.2"), "deepseek4": chat.BuiltIn("deepseek4"),
	}
	read := func(pattern string, text func([]byte) string) {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if s := text(data); s != "" {
				texts[strings.TrimPrefix(f, "../../testdata/")] = s
			}
		}
	}
	whole := func(b []byte) string { return string(b) }
	read("../../testdata/real/*.jinja", whole)
	read("../../testdata/models/*/chat_template.jinja", whole)
	read("../../testdata/models/*/tokenizer_config.json", func(b []byte) string {
		var c struct {
			Template json.RawMessage `json:"chat_template"`
		}
		var text string
		if json.Unmarshal(b, &c) == nil {
			_ = json.Unmarshal(c.Template, &text) // a list of templates has other tests
		}
		return text
	})
	if len(texts) < 4 {
		t.Fatalf("only %d templates", len(texts))
	}
	if _, err := os.Stat(published); err != nil {
		t.Log("the published templates are not here: those of fixtures only")
	}
	read(published+"/*.txt", whole)
	out := map[string]chat.Template{}
	for name, text := range texts {
		c, err := chat.Parse(t.Context(), text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)] = c
	}
	return out
}

// renderer returns how Probe renders a template.
func renderer(c chat.Template) Render {
	return func(ctx context.Context, r chat.Request) (string, error) {
		r.BOS, r.EOS = "<s>", "</s>"
		r.Options.Limits.Steps = limits.TemplateProbeSteps
		return c.Render(ctx, r)
	}
}

func u(text string) chat.Message { return chat.Message{Role: "user", Content: text} }
func a(text string) chat.Message { return chat.Message{Role: "assistant", Content: text} }
func s(text string) chat.Message { return chat.Message{Role: "system", Content: text} }

// ac is a message with calls f1(k=v1), f2... and a content, which is null if text is "null".
func ac(text string, arguments ...string) chat.Message {
	m := chat.Message{Role: "assistant", Content: text}
	if text == "null" {
		m.Content, m.Null = "", true
	}
	for i, args := range arguments {
		m.ToolCalls = append(m.ToolCalls, chat.NewCall(fmt.Sprintf("call_%d", i+1), fmt.Sprintf("fnn%d", i+1), args))
	}
	return m
}

func r(n int, text string) chat.Message {
	return chat.Message{Role: "tool", ToolCallID: fmt.Sprintf("call_%d", n), Content: text}
}

func parts(m chat.Message) chat.Message { return withParts(m) }

const paris, rome = `{"city": "Paris"}`, `{"city":"Rome"}`

// shapes are the conversations that clients send, and the texts that must show in the prompt.
var shapes = []struct {
	name  string
	list  []chat.Message
	shows string
	tools bool
}{
	{"one user", []chat.Message{u("uu1")}, "uu1", false},
	{"system first", []chat.Message{s("ss1"), u("uu1")}, "ss1 uu1", false},
	{"two systems first", []chat.Message{s("ss1"), s("ss2"), u("uu1")}, "ss1 ss2 uu1", false},
	{"three systems first", []chat.Message{s("ss1"), s("ss2"), s("ss3"), u("uu1")}, "ss1 ss2 ss3 uu1", false},
	{"system in the middle", []chat.Message{s("ss1"), u("uu1"), a("aa1"), s("ss2"), u("uu2")},
		"ss1 uu1 aa1 ss2 uu2", false},
	{"system behind the first user", []chat.Message{u("uu1"), s("ss1")}, "uu1 ss1", false},
	{"system last", []chat.Message{u("uu1"), a("aa1"), u("uu2"), s("ss1")}, "uu1 aa1 uu2 ss1", false},
	{"system after the model", []chat.Message{u("uu1"), a("aa1"), s("ss1")}, "uu1 aa1 ss1", false},
	{"system between the model's", []chat.Message{u("uu1"), a("aa1"), s("ss1"), a("aa2"), u("uu2")},
		"uu1 aa1 ss1 aa2 uu2", false},
	{"only a system", []chat.Message{s("ss1")}, "ss1", false},
	{"only systems", []chat.Message{s("ss1"), s("ss2")}, "ss1 ss2", false},
	{"nothing", nil, "", false},
	{"two users", []chat.Message{u("uu1"), u("uu2")}, "uu1 uu2", false},
	{"system, three users", []chat.Message{s("ss1"), u("uu1"), u("uu2"), u("uu3")}, "ss1 uu1 uu2 uu3", false},
	{"two of the model", []chat.Message{u("uu1"), a("aa1"), a("aa2"), u("uu2")}, "uu1 aa1 aa2 uu2", false},
	{"greeting", []chat.Message{a("aa1"), u("uu1")}, "aa1 uu1", false},
	{"system, greeting", []chat.Message{s("ss1"), a("aa1"), u("uu1")}, "ss1 aa1 uu1", false},
	{"two greetings", []chat.Message{a("aa1"), a("aa2"), u("uu1")}, "aa1 aa2 uu1", false},
	{"the model last", []chat.Message{u("uu1"), a("aa1")}, "uu1 aa1", false},
	{"the model alone", []chat.Message{a("aa1")}, "aa1", false},
	{"empty answer", []chat.Message{u("uu1"), a(""), u("uu2")}, "uu1 uu2", false},
	{"null answer", []chat.Message{u("uu1"), {Role: "assistant", Null: true}, u("uu2")}, "uu1 uu2", false},
	{"null user", []chat.Message{{Role: "user", Null: true}}, "", false},
	{"empty user", []chat.Message{u("")}, "", false},
	{"parts", []chat.Message{parts(s("ss1")), parts(u("uu1"))}, "ss1 uu1", false},
	{"parts and texts", []chat.Message{parts(u("uu1")), u("uu2"), parts(s("ss1"))}, "uu1 uu2 ss1", false},
	{"empty parts", []chat.Message{{Role: "user", Parts: []chat.Part{}}}, "", false},
	{"call, null", []chat.Message{u("uu1"), ac("null", paris), r(1, "rr1")}, "uu1 fnn1 city Paris rr1", true},
	{"call, empty", []chat.Message{u("uu1"), ac("", paris), r(1, "rr1")}, "uu1 fnn1 city Paris rr1", true},
	{"call, text", []chat.Message{u("uu1"), ac("aa1", paris), r(1, "rr1")}, "uu1 aa1 fnn1 Paris rr1", true},
	{"call, text, parts", []chat.Message{u("uu1"), parts(ac("aa1", paris)), parts(r(1, "rr1"))},
		"uu1 aa1 fnn1 Paris rr1", true},
	{"calls", []chat.Message{u("uu1"), ac("null", paris, rome), r(1, "rr1"), r(2, "rr2")},
		"uu1 fnn1 Paris fnn2 Rome rr1 rr2", true},
	{"calls, results in another order", []chat.Message{u("uu1"), ac("null", paris, rome), r(2, "rr2"), r(1, "rr1")},
		"uu1 fnn1 Paris fnn2 Rome rr1 rr2", true},
	{"three calls, text", []chat.Message{u("uu1"), ac("aa1", paris, rome, `{"city":"Oslo"}`), r(1, "rr1"), r(2, "rr2"),
		r(3, "rr3")}, "uu1 aa1 fnn1 Paris fnn2 Rome fnn3 Oslo rr1 rr2 rr3", true},
	{"calls, one result", []chat.Message{u("uu1"), ac("null", paris, rome), r(1, "rr1"), u("uu2")},
		"uu1 fnn1 Paris fnn2 Rome rr1 uu2", true},
	{"rounds", []chat.Message{u("uu1"), ac("null", paris), r(1, "rr1"), ac("aa1", rome), r(1, "rr2"), a("aa2"), u("uu2")},
		"uu1 fnn1 Paris rr1 aa1 Rome rr2 aa2 uu2", true},
	{"user after the result", []chat.Message{u("uu1"), ac("null", paris), r(1, "rr1"), u("uu2")},
		"uu1 fnn1 Paris rr1 uu2", true},
	{"system after the result", []chat.Message{s("ss1"), u("uu1"), ac("null", paris), r(1, "rr1"), s("ss2")},
		"ss1 uu1 fnn1 Paris rr1 ss2", true},
	{"system between call and result", []chat.Message{u("uu1"), ac("null", paris), s("ss2"), r(1, "rr1")},
		"uu1 fnn1 Paris rr1 ss2", true},
	{"call without a result", []chat.Message{u("uu1"), ac("null", paris), u("uu2")}, "uu1 fnn1 Paris uu2", true},
	{"call without a result, model", []chat.Message{u("uu1"), ac("null", paris), a("aa1"), u("uu2")},
		"uu1 fnn1 Paris aa1 uu2", true},
	{"call last", []chat.Message{u("uu1"), ac("null", paris)}, "uu1 fnn1 Paris", true},
	{"call first", []chat.Message{ac("null", paris), r(1, "rr1"), u("uu1")}, "fnn1 Paris rr1 uu1", true},
	{"result without a call", []chat.Message{u("uu1"), r(9, "rr1")}, "uu1 rr1", true},
	{"result without a call, later", []chat.Message{u("uu1"), a("aa1"), r(9, "rr1"), u("uu2")}, "uu1 aa1 rr1 uu2", true},
	{"result first", []chat.Message{r(9, "rr1"), u("uu1")}, "rr1 uu1", true},
	{"history without tools", []chat.Message{u("uu1"), ac("null", paris), r(1, "rr1"), u("uu2")},
		"uu1 fnn1 Paris rr1 uu2", false},
	{"calls in history without tools", []chat.Message{s("ss1"), u("uu1"), ac("aa1", paris, rome), r(1, "rr1"),
		r(2, "rr2"), a("aa2"), u("uu2")}, "ss1 uu1 aa1 fnn1 Paris fnn2 Rome rr1 rr2 aa2 uu2", false},
	{"empty result", []chat.Message{u("uu1"), ac("null", paris), r(1, "")}, "uu1 fnn1 Paris", true},
	{"cut arguments", []chat.Message{u("uu1"), ac("", `{"city": "Par`), r(1, "rr1")}, "uu1 fnn1 Par rr1", true},
	{"cut arguments, nested", []chat.Message{u("uu1"), ac("", `{"a": [1, {"b": "Par\`), r(1, "rr1")}, "fnn1 Par rr1",
		true},
	{"empty arguments", []chat.Message{u("uu1"), ac("", ""), r(1, "rr1")}, "uu1 fnn1 rr1", true},
	{"null arguments", []chat.Message{u("uu1"), ac("", "null"), r(1, "rr1")}, "uu1 fnn1 rr1", true},
	{"arguments of words", []chat.Message{u("uu1"), ac("", "Paris please"), r(1, "rr1")}, "uu1 fnn1 Paris rr1", true},
	{"arguments in a list", []chat.Message{u("uu1"), ac("", `["Paris"]`), r(1, "rr1")}, "uu1 fnn1 Paris rr1", true},
	{"arguments with quotes", []chat.Message{u("uu1"), ac("", `{"city": "Par\"is\\ é"}`), r(1, "rr1")}, "fnn1 rr1",
		true},
}

// moved are the shapes that are adapted even where a template takes them: it shows their texts in an order, in a form
// or in a place that its model was not trained with.
var moved = regexp.MustCompile(`system|parts|nothing|arguments|null answer|result without a call`)

// Every conversation that a client may send renders with every template, none of its texts is dropped, and what the
// template takes as it is stays as it is.
func TestEveryConversationFitsEveryTemplate(t *testing.T) {
	offer := probeTool()
	for name, c := range templates(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shape, err := Probe(t.Context(), renderer(c))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rendering(t, c, nil, u("x")); err != nil {
				t.Logf("requires variables that no conversation has: %v", err)
				return
			}
			// Models that judge the last turn leave out the turns before it.
			before, _ := rendering(t, c, nil, u("uu1"), a("aa1"), u("uu2"))
			judge := before != "" && !strings.Contains(before, "uu1")
			for _, x := range shapes {
				var tools []chat.Tool
				if x.tools {
					tools = []chat.Tool{offer}
				}
				list := shape.Fit(x.list, x.tools)
				text, err := rendering(t, c, tools, list...)
				if err != nil {
					t.Errorf("%s: %v\n%+v\n%+v", x.name, err, *shape, list)
					continue
				}
				if word := missing(text, x.shows); word != "" && !judge {
					t.Errorf("%s: %s is missing in %q\n%+v", x.name, word, text, *shape)
				}
				bare, _ := rendering(t, c, tools, u("x"))
				if strings.Contains(text, "None") && !strings.Contains(bare, "None") {
					t.Errorf("%s: None in %q", x.name, text)
				}
				as, err := rendering(t, c, tools, x.list...)
				if err == nil && as != text && missing(as, x.shows+" ") == "" && !moved.MatchString(x.name) &&
					!strings.Contains(as, "None") {
					t.Errorf("%s: changed from %q to %q", x.name, as, text)
				}
				if _, err := rendering(t, c, tools, shape.Strict(x.list)...); err != nil {
					t.Errorf("%s, strictly: %v", x.name, err)
				}
			}
		})
	}
}

// missing returns the first of the words that a text lacks.
func missing(text, words string) string {
	for _, word := range strings.Fields(words) {
		if !strings.Contains(text, word) {
			return word
		}
	}
	return ""
}

// A longer conversation begins like the shorter one, so that its prefix is cached.
func TestLongerConversationsBeginAlike(t *testing.T) {
	for name, c := range templates(t) {
		shape, err := Probe(t.Context(), renderer(c))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range shapes {
			short, long := shape.Fit(x.list, x.tools), shape.Fit(append(x.list[:len(x.list):len(x.list)], a("aa9")), x.tools)
			if x.name == "nothing" || x.name == "only a system" || x.name == "only systems" || strings.Contains(x.name, "last") {
				continue // its last message is not answered yet, and another one takes its place
			}
			for i := range short {
				if i >= len(long) || !strings.HasPrefix(long[i].Content, short[i].Content) || long[i].Role != short[i].Role {
					t.Errorf("%s, %s: %d: %+v\n%+v", name, x.name, i, short, long)
					break
				}
			}
		}
	}
}

// rendering is the prompt of a conversation without adaptation.
func rendering(t *testing.T, c chat.Template, tools []chat.Tool, list ...chat.Message) (string, error) {
	return c.Render(t.Context(), chat.Request{Messages: list, Tools: tools, AddGenerationPrompt: true, BOS: "<s>",
		EOS: "</s>"})
}
