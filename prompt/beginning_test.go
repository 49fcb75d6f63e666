package prompt

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
)

// A beginning is common to all conversations that continue it, and ends behind the texts that they share.
func TestBeginning(t *testing.T) {
	s := style(t, template("{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"+
		"{% if add_generation_prompt %}<assistant>{% endif %}"))
	system := chat.Message{Role: "system", Content: "Answer in verse."}
	user := chat.Message{Role: "user", Content: "Hello"}
	final := chat.Message{Role: "assistant", Content: "Good day"}
	for _, c := range []struct {
		name     string
		messages []chat.Message
		whole    bool // the model's turn is next
	}{
		{"system", []chat.Message{system}, false},
		{"answered", []chat.Message{system, user, final}, false},
		{"asked", []chat.Message{system, user}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids := func(more ...chat.Message) []int32 {
				q := Conversation{Request: chat.Request{Messages: slices.Concat(c.messages, more), AddGenerationPrompt: true}}
				p, err := s.Begin(t.Context(), letters{}, q)
				if err != nil {
					t.Fatal(err)
				}
				return p.IDs
			}
			got, err := s.Beginning(t.Context(), letters{}, Conversation{Request: chat.Request{Messages: c.messages}})
			if err != nil {
				t.Fatal(err)
			}
			if c.whole {
				if want := ids(); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
				return
			}
			for _, text := range []string{"Hello", "1 and 1?", "a"} {
				all := ids(chat.Message{Role: "user", Content: text})
				if len(got) >= len(all) || !slices.Equal(got, all[:len(got)]) {
					t.Errorf("%q: %v does not begin with %v", text, all, got)
				}
			}
			if last := c.messages[len(c.messages)-1].Content; !strings.HasSuffix(text(got), last+"\n<user>") {
				t.Errorf("%q does not end behind %q", text(got), last)
			}
		})
	}
}
