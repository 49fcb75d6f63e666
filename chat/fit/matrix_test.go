package fit

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/chattest"
	"github.com/ingotml/ingot/internal/limits"
)

// templates returns all chat templates at hand by name, with those of the program.
func templates(t *testing.T) map[string]chat.Template {
	t.Helper()
	texts := chattest.Texts(t, "../..")
	for _, name := range []string{"deepseek3.2", "deepseek4"} {
		texts[name] = chat.BuiltIn(name)
	}
	texts["Go, one exchange"] = "{{ if .System }}<s>{{ .System }}</s>{{ end }}<u>{{ .Prompt }}</u><a>{{ .Response }}</a>"
	texts["Go, messages"] = `{{ range .Messages }}<{{ .Role }}>{{ .Content }}{{ end }}<assistant>`
	texts["Go, calls"] = `{{ if .Tools }}{{ .Tools }}{{ end }}{{ range .Messages }}<{{ .Role }}>{{ .Content }}` +
		`{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}</>` +
		`{{ end }}<assistant>`
	out := map[string]chat.Template{}
	for name, text := range texts {
		c, err := chat.Parse(t.Context(), text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = c
	}
	return out
}

// shape is a conversation that clients send.
type shape struct {
	chattest.Conversation
	list []chat.Message
}

func shapes(t *testing.T) (out []shape) {
	t.Helper()
	for _, c := range chattest.Conversations() {
		x := shape{Conversation: c}
		if err := json.Unmarshal([]byte(c.Messages), &x.list); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		out = append(out, x)
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

// moved are the shapes that are adapted even where a template takes them: it shows their texts in an order, in a form
// or in a place that its model was not trained with.
var moved = regexp.MustCompile(`system|parts|arguments|null answer|result without a call`)

// Every conversation that a client may send renders with every template, none of its texts is dropped, and what the
// template takes as it is stays as it is.
func TestEveryConversationFitsEveryTemplate(t *testing.T) {
	var offer chat.Tool
	if err := json.Unmarshal([]byte(chattest.Tool), &offer); err != nil {
		t.Fatal(err)
	}
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
			for _, x := range shapes(t) {
				var tools []chat.Tool
				if x.Tools {
					tools = []chat.Tool{offer}
				}
				list := shape.Fit(x.list, x.Tools)
				text, err := rendering(t, c, tools, list...)
				if err != nil {
					t.Errorf("%s: %v\n%+v\n%+v", x.Name, err, *shape, list)
					continue
				}
				if word := missing(text, x.Shows); word != "" && !judge {
					t.Errorf("%s: %s is missing in %q\n%+v", x.Name, word, text, *shape)
				}
				bare, _ := rendering(t, c, tools, u("x"))
				if strings.Contains(text, "None") && !strings.Contains(bare, "None") {
					t.Errorf("%s: None in %q", x.Name, text)
				}
				as, err := rendering(t, c, tools, x.list...)
				if err == nil && as != text && missing(as, x.Shows) == "" && !moved.MatchString(x.Name) &&
					!strings.Contains(as, "None") {
					t.Errorf("%s: changed from %q to %q", x.Name, as, text)
				}
				if _, err := rendering(t, c, tools, shape.Strict(x.list)...); err != nil {
					t.Errorf("%s, strictly: %v", x.Name, err)
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

// A conversation with one more exchange begins like the one before, so that its prefix is cached.
func TestLongerConversationsBeginAlike(t *testing.T) {
	for name, c := range templates(t) {
		shape, err := Probe(t.Context(), renderer(c))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range shapes(t) {
			more := append(x.list[:len(x.list):len(x.list)], a("aa9"), u("uu9"))
			short, long := shape.Fit(x.list, x.Tools), shape.Fit(more, x.Tools)
			if strings.HasPrefix(x.Name, "only") || strings.Contains(x.Name, "last") || strings.Contains(x.Name, "alone") {
				continue // nobody has asked yet, or the last message is not answered
			}
			for i := range short {
				if i >= len(long) || !strings.HasPrefix(long[i].Content, short[i].Content) || long[i].Role != short[i].Role {
					t.Errorf("%s, %s: %d: %+v\n%+v", name, x.Name, i, short, long)
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
