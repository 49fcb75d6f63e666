package prompt

import (
	"context"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/modelfile"
)

// countedBudget counts renders and tokenizations.
type countedBudget struct{ taken *int }

func (c countedBudget) Take(context.Context, int64) (func(), error) {
	*c.taken++
	return func() {}, nil
}

// countedLetters counts tokenized prompts.
type countedLetters struct {
	letters
	encoded *int
}

func (c countedLetters) EncodeRendered(ctx context.Context, text string, bos bool) ([]int32, error) {
	*c.encoded++
	return c.letters.EncodeRendered(ctx, text, bos)
}

// A prompt is rendered and tokenized once for any number of responses, each of which has a reader of its own.
func TestBeginOnce(t *testing.T) {
	s := style(t, modelfile.Command{Name: modelfile.Template, Value: "{% for m in messages %}{{ m.content }}{% endfor %}"},
		modelfile.Command{Name: modelfile.Parser, Value: "qwen3"})
	taken, encoded := 0, 0
	c := Conversation{Budget: countedBudget{&taken}}
	c.Messages = []chat.Message{{Role: "user", Content: "Hi"}}
	if _, err := s.Begin(t.Context(), letters{}, c); err != nil { // finds out what the template accepts
		t.Fatal(err)
	}
	taken = 0
	p, err := s.Begin(t.Context(), countedLetters{encoded: &encoded}, c)
	if err != nil {
		t.Fatal(err)
	}
	for range 128 {
		again, err := p.Again()
		if err != nil {
			t.Fatal(err)
		}
		if &again.IDs[0] != &p.IDs[0] || again.Reader.parser == p.Reader.parser {
			t.Fatal("another response does not share the prompt, or shares its reader")
		}
	}
	if taken-encoded != 1 || encoded != 1 {
		t.Errorf("%d renders and %d tokenizations, want 1 of each", taken-encoded, encoded)
	}
}

// What a conversation begins with, with and without a system message of its own.
func TestOpening(t *testing.T) {
	s := style(t, modelfile.Command{Name: modelfile.Template, Value: "{{ messages }}"},
		modelfile.Command{Name: modelfile.System, Value: "image"},
		modelfile.Command{Name: modelfile.Message, Key: "user", Value: "shot"})
	user, own, empty := chat.Message{Role: "user", Content: "Hi"}, chat.Message{Role: "system", Content: "own"},
		chat.Message{Role: "system"}
	for _, test := range []struct {
		list         []chat.Message
		full, system string
	}{
		{[]chat.Message{user}, "image shot Hi", "image Hi"},
		{[]chat.Message{own, user}, "own shot Hi", "own Hi"},
		{[]chat.Message{empty, user}, "shot Hi", "Hi"},
		{[]chat.Message{empty, own, user}, "shot own Hi", "own Hi"},
		{nil, "image shot", "image"},
	} {
		if got := contents(s.WithImageMessages(test.list)); got != test.full {
			t.Errorf("%v: %q, want %q", test.list, got, test.full)
		}
		if got := contents(s.WithSystem(test.list)); got != test.system {
			t.Errorf("%v without the image's messages: %q, want %q", test.list, got, test.system)
		}
	}
	s.Templates = nil
	if got := contents(s.WithImageMessages([]chat.Message{user})); got != "Hi" {
		t.Errorf("without a template: %q", got)
	}
}

func contents(list []chat.Message) (text string) {
	for i, m := range list {
		if i > 0 {
			text += " "
		}
		text += m.Content
	}
	return text
}
