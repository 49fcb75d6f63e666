package prompt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/runtime"
)

func TestShorten(t *testing.T) {
	// Messages are written as role letters with a content; a picture is !.
	conversation := func(text string) (c Conversation) {
		roles := map[byte]string{'s': "system", 'u': "user", 'a': chat.Assistant, 't': "tool"}
		for _, word := range strings.Fields(text) {
			m := chat.Message{Role: roles[word[0]], Content: word}
			if strings.Contains(word, "!") {
				m.Parts = []chat.Part{{Type: "image"}}
				c.Pictures = append(c.Pictures, runtime.Picture{Name: word})
			}
			c.Messages = append(c.Messages, m)
		}
		return c
	}
	build := func(c Conversation) (*Prompt, error) {
		p := &Prompt{Pictures: c.Pictures}
		for _, m := range c.Messages {
			p.Thinking += " " + m.Content // the texts
		}
		p.IDs = make([]int32, len(c.Messages))
		if len(p.IDs) > 12 {
			return nil, ErrLong
		}
		return p, nil
	}
	for _, c := range []struct {
		text     string
		room     int
		want     string
		pictures string
	}{
		{"s u1 a1 u2 a2 u3", 6, "s u1 a1 u2 a2 u3", ""},
		{"s u1 a1 u2 a2 u3", 4, "s u2 a2 u3", ""},
		{"s u1 a1 u2 a2 u3", 1, "s u3", ""},
		{"u1 a1 t1 t1 u2", 3, "u2", ""}, // a call goes with its results
		{"u1 a1 u2 a2 t2 a3 t3", 4, "u2 a3 t3", ""},
		{"u1 a1 s2 u2", 2, "s2 u2", ""},
		{"u1! a1 u2! u3", 2, "u2! u3", "u2!"},
		{"u1! a1 u2! u3", 4, "u1! a1 u2! u3", "u1!u2!"},
		{"u1 u2 u3 u4 u5 u6 u7 u8 u9 u10 u11 u12 u13 u14", 13, "u3 u4 u5 u6 u7 u8 u9 u10 u11 u12 u13 u14", ""},
		{"s", 0, "s", ""},
	} {
		p, err := Shorten(t.Context(), conversation(c.text), build,
			func(p *Prompt) (bool, error) { return len(p.IDs) <= c.room, nil })
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		pictures := ""
		for _, x := range p.Pictures {
			pictures += x.Name
		}
		if got := strings.TrimSpace(p.Thinking); got != c.want || pictures != c.pictures {
			t.Errorf("%s in %d: %q with %q", c.text, c.room, got, pictures)
		}
	}
	never := func(*Prompt) (bool, error) { return false, nil }
	if _, err := Shorten(t.Context(), conversation(strings.Repeat("s ", 13)+"u"), build, never); !errors.Is(err, ErrLong) {
		t.Errorf("system messages that are too long: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fits := func(p *Prompt) (bool, error) { cancel(); return len(p.IDs) == 1, nil }
	if _, err := Shorten(ctx, conversation("u1 u2 u3 u4"), build, fits); !errors.Is(err, context.Canceled) {
		t.Errorf("after the client has left: %v", err)
	}
}

// A message is left out with its pictures.
func TestPicturesOfMessagesLeftOut(t *testing.T) {
	image, text := chat.Part{Type: "image"}, chat.Part{Type: "text"}
	c := Conversation{Pictures: []runtime.Picture{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}}}
	c.Messages = []chat.Message{
		{Role: "user", Parts: []chat.Part{image, image, text}}, {Role: "assistant"},
		{Role: "user", Parts: []chat.Part{text, image}}, {Role: "assistant"}, {Role: "user", Parts: []chat.Part{image}},
	}
	for n, want := range map[int][]int{0: {0, 1, 2, 3}, 1: {2, 3}, 2: {2, 3}, 3: {3}, 4: {3}} {
		got := without(c, droppable(c.Messages)[:n])
		var ids []int
		for _, p := range got.Pictures {
			ids = append(ids, p.ID)
		}
		if !slices.Equal(ids, want) || len(got.Messages) != 5-n {
			t.Errorf("%d left out: pictures %v of %d messages, want %v", n, ids, len(got.Messages), want)
		}
	}
}
