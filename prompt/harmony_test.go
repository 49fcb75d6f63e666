package prompt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/modelfile"
)

// A message with several calls becomes one message for each, followed by its result. Text and thinking before a call
// are one text, and contents are strings.
func TestHarmonyMessages(t *testing.T) {
	call := func(id string) chat.ToolCall { return chat.ToolCall{ID: id, Name: "f" + id} }
	result := func(id, text string) chat.Message { return chat.Message{Role: "tool", Content: text, ToolCallID: id} }
	calls := func(list ...chat.ToolCall) chat.Message {
		return chat.Message{Role: chat.Assistant, Null: true, Reasoning: "why", ToolCalls: list}
	}
	said := calls(call("1"))
	said.Content, said.Null = "Let me look.", false
	for _, c := range []struct {
		in   []chat.Message
		want string
	}{
		{[]chat.Message{{Role: "user", Content: "Hi", Parts: TextParts("Hi", 0)}}, "user:Hi"},
		{[]chat.Message{calls(call("1")), result("1", "a")}, "assistant:(why)f1 tool:a"},
		{
			[]chat.Message{calls(call("1"), call("2")), result("2", "b"), result("1", "a"), {Role: "user", Content: "x"}},
			"assistant:(why)f1 tool:a assistant:f2 tool:b user:x",
		},
		{[]chat.Message{calls(call(""), call("")), result("", "a"), result("", "b"), result("", "c")},
			"assistant:(why)f tool:a assistant:f tool:b tool:c"},
		{[]chat.Message{said}, "assistant:(why\n\nLet me look.)f1"},
		{[]chat.Message{result("9", "a")}, "tool:a"},
	} {
		var got []string
		for _, m := range harmony(chat.Request{Messages: c.in}).Messages {
			if m.Null || m.Parts != nil || len(m.ToolCalls) > 1 {
				t.Errorf("%+v", m)
			}
			text := m.Role + ":" + m.Content
			if m.Reasoning != "" {
				text += "(" + m.Reasoning + ")"
			}
			for _, call := range m.ToolCalls {
				text += call.Name
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("got %q, want %q", text, c.want)
		}
	}
	tool := chat.Tool{}
	for _, c := range []struct{ in, want string }{
		{`{"type":"function","function":{"name":"f"}}`, `{"type": "function", "function": {"name": "f", "description": ""}}`},
		{`{"type":"function","function":{"name":"f","description":"x"}}`,
			`{"type": "function", "function": {"name": "f", "description": "x"}}`},
		{`{"name":"f"}`, `{"name": "f"}`},
	} {
		if err := tool.UnmarshalJSON([]byte(c.in)); err != nil {
			t.Fatal(err)
		}
		got, err := harmony(chat.Request{Tools: []chat.Tool{tool}}).Tools[0].MarshalJSON()
		if was, _ := tool.MarshalJSON(); err != nil || string(got) != c.want || strings.Contains(string(was), `: ""`) {
			t.Errorf("got %s, want %s; the request's is now %s; %v", got, c.want, was, err)
		}
	}
	for think, want := range map[string]string{"false ": "low", "false high": "high", "true ": ""} {
		on, level, _ := strings.Cut(think, " ")
		b := on == "true"
		if got := harmony(chat.Request{Think: &b, ThinkLevel: level}).ThinkLevel; got != want {
			t.Errorf("think %s: level %q, want %q", think, got, want)
		}
	}
}

// A given start of an answer begins the final message. Without it, the prompt says what comes before an answer.
func TestHarmonyPrompt(t *testing.T) {
	s := style(t, modelfile.Command{Name: modelfile.Parser, Value: "harmony"}, modelfile.Command{
		Name: modelfile.Template, Value: "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>" +
			"{% endfor %}<|start|>assistant{# <|channel|> #}",
	})
	for final, want := range map[string]string{
		"":   "<|start|>assistant",
		"So": "<|start|>assistant<|channel|>final<|message|>So",
	} {
		c := Conversation{Request: chat.Request{Messages: []chat.Message{user("Hi", 0),
			{Role: chat.Assistant, Content: final}}}, Continue: true}
		p, err := s.Begin(t.Context(), letters{}, c)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, id := range p.IDs {
			text.WriteByte(byte(id))
		}
		if !strings.HasSuffix(text.String(), "Hi<|end|>"+want) {
			t.Errorf("prompt %q", text.String())
		}
		if (p.FinalTag == "") != (final != "") || (p.FinalRules == "") != (final != "") || p.Thinking != "" ||
			fmt.Sprint(p.Tags) != "{<|channel|>analysis<|message|> <|end|>}" {
			t.Errorf("answer %q: %+v", final, p)
		}
	}
}
