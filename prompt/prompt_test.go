package prompt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/runtime"
)

// letters is a model whose tokens are bytes and whose picture tokens are asterisks. If blind, it accepts no pictures.
type letters struct{ blind bool }

func (letters) BOSEOS() (bos, eos string) { return "^", "$" }

func (letters) EncodeRendered(_ context.Context, text string, bos bool) (ids []int32, err error) {
	if bos && !strings.HasPrefix(text, "^") {
		text = "^" + text
	}
	for _, b := range []byte(text) {
		ids = append(ids, int32(b))
	}
	return ids, nil
}

func (m letters) ShowPictures(text string, pictures []runtime.Picture) (string, []runtime.Picture, error) {
	return strings.Repeat("*", len(pictures)) + text, pictures, m.CheckPictures()
}

func (letters) PicturePlaces(prompt []int32) (n int) {
	for _, id := range prompt {
		if id == '*' {
			n++
		}
	}
	return n
}

func (m letters) CheckPictures() error {
	if m.blind {
		return runtime.ErrPictures
	}
	return nil
}

// style opens the demo model with additional Modelfile lines.
func style(t *testing.T, lines ...modelfile.Command) *Style {
	t.Helper()
	store, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n, err := manifest.ParseName("m")
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join("..", "testdata", "models", "demo")
	file := &modelfile.File{Commands: append([]modelfile.Command{{Name: modelfile.From, Value: from}}, lines...)}
	if _, err := convert.Create(t.Context(), store, n, file, convert.Options{}); err != nil {
		t.Fatal(err)
	}
	entry, err := store.Resolve(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(store, entry)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context(), chat.Request{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func template(text string) modelfile.Command {
	return modelfile.Command{Name: modelfile.Template, Value: text}
}

func text(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteByte(byte(id))
	}
	return b.String()
}

func user(content string, pictures int) chat.Message {
	m := chat.Message{Role: "user", Content: content}
	if pictures > 0 {
		m.Parts = TextParts(content, pictures)
	}
	return m
}

func TestPrompts(t *testing.T) {
	const plain = `{% for m in messages %}{{ m.role }}:{{ m.content if m.content is string else 'parts' }};{% endfor %}`
	const shows = `{{ bos_token }}{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}` +
		`{% for p in m.content %}{{ '*' if p.type == 'image' else p.text }}{% endfor %}{% endif %};{% endfor %}`
	pictures := func(n int) (list []runtime.Picture) {
		for i := range n {
			list = append(list, runtime.Picture{ID: i, Name: fmt.Sprint(i)})
		}
		return list
	}
	for name, c := range map[string]struct {
		lines []modelfile.Command
		talk  Conversation
		want  string
	}{
		"no template": {nil, Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 0),
			{Role: "assistant", Content: "b"}}}}, "^ab"},
		"no template, pictures": {nil, Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 2)}},
			Pictures: pictures(2)}, "^**a"},
		"continued response": {[]modelfile.Command{template(plain)},
			Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 0), said("so")}}, Continue: true},
			"^user:a;so"},
		"last message of the model": {[]modelfile.Command{template(plain)},
			Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 0), said("so")}}}, "^user:a;assistant:so;"},
		"template": {[]modelfile.Command{template(plain)},
			Conversation{Request: chat.Request{Messages: []chat.Message{{Role: "system", Content: "s"}, user("a", 0)}}},
			"^system:s;user:a;"},
		"template with pictures": {[]modelfile.Command{template(shows)},
			Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 1), user("b", 2)}}, Pictures: pictures(3)},
			"^*a;**b;"},
		"template without pictures": {[]modelfile.Command{template(plain)},
			Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 1), user("b", 2)}}, Pictures: pictures(3)},
			"^user:*a;user:**b;"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := style(t, c.lines...).Begin(t.Context(), letters{}, c.talk)
			if err != nil {
				t.Fatal(err)
			}
			var ids []int
			for _, x := range p.Pictures {
				ids = append(ids, x.ID)
			}
			if text(p.IDs) != c.want || !slices.IsSorted(ids) || len(ids) != len(c.talk.Pictures) || p.Special {
				t.Errorf("prompt %q, pictures %v; want %q", text(p.IDs), ids, c.want)
			}
		})
	}
	s := style(t)
	for name, c := range map[string]struct {
		talk Conversation
		want error
	}{
		"system": {Conversation{Request: chat.Request{Messages: []chat.Message{{Role: "system", Content: "s"}}}},
			chat.ErrNoTemplate},
		"tools": {Conversation{Request: chat.Request{Tools: make([]chat.Tool, 1)}}, chat.ErrNoTemplate},
		"pictures": {Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 1)}}, Pictures: pictures(1)},
			runtime.ErrPictures},
	} {
		if _, err := s.Begin(t.Context(), letters{blind: true}, c.talk); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestReader(t *testing.T) {
	s := style(t, template(`{{ messages[0].content }}<think>{# </think> #}`),
		modelfile.Command{Name: modelfile.Parser, Value: "qwen3"})
	c := Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 0)}}}
	p, err := s.Begin(t.Context(), letters{}, c)
	if err != nil || !p.Special || p.Thinking != "</think>" {
		t.Fatalf("%+v, %v", p, err)
	}
	events := p.Reader.Feed("hm</think>so")
	rest, err := p.Reader.Close()
	if err != nil {
		t.Fatal(err)
	}
	events = parse.Merge(append(events, rest...))
	if len(events) != 2 || events[0].Kind != parse.Thinking || events[0].Text != "hm" || events[1].Kind != parse.Content ||
		events[1].Text != "so" {
		t.Errorf("%+v", events)
	}
	c.Messages, c.Continue = append(c.Messages, said("It is")), true
	p, err = s.Begin(t.Context(), letters{}, c)
	if err != nil || !strings.HasSuffix(text(p.IDs), "<think></think>\n\nIt is") || p.Thinking != "" {
		t.Errorf("continued response: %q, %+v, %v", text(p.IDs), p, err)
	}
	if events = p.Reader.Feed(" so."); len(events) != 1 || events[0].Kind != parse.Content || events[0].Text != " so." {
		t.Errorf("continued response: events %+v", events)
	}
	if got := (Reader{}).Feed("text"); len(got) != 1 || got[0].Text != "text" {
		t.Errorf("without a parser: %+v", got)
	}
}

func TestWith(t *testing.T) {
	s, err := style(t).With(t.Context(), `{{ .Prompt }}-{{ .Suffix }}`)
	if err != nil || !s.Fills() {
		t.Fatalf("%v, fills %v", err, s.Fills())
	}
	p, err := s.Begin(t.Context(), letters{}, Conversation{Request: chat.Request{Messages: []chat.Message{user("a", 0)},
		Suffix: "b"}})
	if err != nil || text(p.IDs) != "^a-b" {
		t.Errorf("%q, %v", text(p.IDs), err)
	}
	if _, err := s.With(t.Context(), `{{ .Prompt`); err == nil {
		t.Error("an invalid template is accepted")
	}
	if other, err := s.With(t.Context(), `{{ messages }}`); err != nil || other.Fills() {
		t.Errorf("%v, or a template without a suffix supports one", err)
	}
}

// said is a message of the model.
func said(text string) chat.Message { return chat.Message{Role: chat.Assistant, Content: text} }

// A given thought is continued, or ends before the answer that follows it.
func TestContinuedThoughts(t *testing.T) {
	const opens = "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<think>\n{% endif %}" +
		"{# </think> #}"
	const closed = "{% for m in messages %}{{ m.content }}{% endfor %}{# <think></think> #}"
	for _, c := range []struct{ template, thought, final, want, think string }{
		{opens, "hm", "", "u<think>\nhm", "</think>"},
		{opens, "hm", "so", "u<think>\nhm\n</think>\n\nso", ""},
		{opens, "", "so", "u<think>\n</think>\n\nso", ""},
		{closed, "hm", "", "u<think>\nhm", "</think>"},
		{closed, "hm", "so", "u<think>\nhm\n</think>\n\nso", ""},
		{closed, "", "so", "uso", ""},
	} {
		s := style(t, template(c.template), modelfile.Command{Name: modelfile.Parser, Value: "qwen3"})
		last := said(c.final)
		last.Reasoning = c.thought
		q := Conversation{Request: chat.Request{Messages: []chat.Message{user("u", 0), last}}, Continue: true}
		q.AddGenerationPrompt = true
		p, err := s.Begin(t.Context(), letters{}, q)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(p.IDs); !strings.HasSuffix(got, c.want) || p.Thinking != c.think {
			t.Errorf("%q, %q: got %q and %q, want %q and %q", c.thought, c.final, got, p.Thinking, c.want, c.think)
		}
	}
}

// What no adaptation can express is an error that names the message and has the template's own words.
func TestRefusedMessage(t *testing.T) {
	s := style(t, template("{% for m in messages %}{% if 'bad' in m.content %}{{ raise_exception('no bad words') }}"+
		"{% endif %}{{ m.content }}{% endfor %}"))
	list := []chat.Message{user("a", 0), said("b"), user("bad", 0), said("c"), user("d", 0)}
	for i := range list {
		list[i].At = fmt.Sprintf("messages[%d]", i)
	}
	_, err := s.Begin(t.Context(), letters{}, Conversation{Request: chat.Request{Messages: list}})
	if err == nil || !strings.Contains(err.Error(), "messages[2]: ") || !strings.Contains(err.Error(), "no bad words") {
		t.Errorf("%v", err)
	}
}
