package talk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
)

// Model is what a prompt is made for: a *runtime.Processor, or a *runtime.Local.
type Model interface {
	BOSEOS() (bos, eos string)
	EncodeRendered(text string, bos bool) ([]int32, error)
	ShowPictures(text string, pictures []runtime.Picture) (string, []runtime.Picture, error)
	PicturePlaces(prompt []int32) int
	CheckPictures() error
}

// Conversation is what a prompt is made of. BOS and EOS of the request are the model's.
type Conversation struct {
	chat.Request
	Pictures []runtime.Picture // one for each part of type "image" of the messages, in their order, with different IDs
	Answer   string            // the model goes on from: its answer begins with that already
	Budget   Budget            // of the memory that making the prompt takes; nil: no bounds
}

// Prompt is what a conversation becomes, and who reads the answer.
type Prompt struct {
	IDs      []int32
	Pictures []runtime.Picture // in the order of their places
	Special  bool              // the reader needs special tokens in the text
	Reader   Reader
	Thinking string     // the tag that ends the thinking in which the prompt ends; a format of the answer comes after it. Empty: it ends in none
	Tags     parse.Tags // of the thinking that the answer may begin with where the prompt ends in none

	read func() (parse.Parser, error) // makes a reader's parser; nil: it has none
}

// Again is the prompt for another answer, with a reader of its own. Ids and pictures are shared.
func (p *Prompt) Again() (*Prompt, error) {
	again := *p
	if p.read == nil {
		return &again, nil
	}
	var err error
	again.Reader.parser, err = p.read()
	return &again, err
}

// TextParts is the content of a message that shows n pictures before its text.
func TextParts(text string, n int) []chat.Part {
	return append(slices.Repeat([]chat.Part{{Type: "image"}}, n), chat.Part{Type: "text", Text: text})
}

// Begin makes the prompt. Without a template the texts of the messages go to the model as they are, one after the other.
func (s *Style) Begin(ctx context.Context, m Model, c Conversation) (*Prompt, error) {
	if err := chat.CheckTools(c.Tools); err != nil {
		return nil, err
	}
	if len(c.Pictures) > 0 {
		if err := m.CheckPictures(); err != nil {
			return nil, err
		}
	}
	if c.Budget == nil {
		c.Budget = free{}
	}
	c.BOS, c.EOS = m.BOSEOS()
	text, ids, err := s.render(ctx, m, c)
	if len(c.Pictures) > 0 && (err != nil || s.Template == nil || m.PicturePlaces(ids) < len(c.Pictures)) {
		// The template knows of no pictures: they are shown by the tokens that the model has for them.
		if c, err = c.shown(m); err == nil {
			text, ids, err = s.render(ctx, m, c)
		}
	}
	if err != nil {
		return nil, err
	}
	p := &Prompt{IDs: ids, Pictures: c.Pictures}
	if s.Template == nil || !parse.Known(s.Texts.Parser) {
		return p, nil
	}
	_, think := parse.Detect(s.Text)
	o := parse.Options{Tools: parseTools(c.Tools), Think: think, Thinking: parse.Opens(s.Texts.Parser, think, text)}
	if think == (parse.Tags{}) {
		think = parse.Thinks(s.Texts.Parser)
	}
	if o.Thinking {
		p.Thinking = think.Close
	} else {
		p.Tags = think
	}
	p.read = func() (parse.Parser, error) { return parse.New(s.Texts.Parser, o) }
	p.Special = true
	return p.Again()
}

// render gives the prompt and its ids.
func (s *Style) render(ctx context.Context, m Model, c Conversation) (text string, ids []int32, err error) {
	// Templates of Modelfiles leave BOS to the tokenizer; published ones write it themselves.
	bos := s.own
	if s.Template == nil {
		bos = true
		text, err = s.plain(c)
	} else {
		text, err = Render(ctx, c.Budget, s.Template, c.Request)
	}
	if err == nil {
		text += s.begun(text, c.Answer)
		ids, err = Encode(ctx, c.Budget, text, func(text string) ([]int32, error) { return m.EncodeRendered(text, bos) })
	}
	return text, ids, err
}

// begun is an answer that has begun, behind a prompt: what the model thinks before it is over.
func (s *Style) begun(prompt, answer string) string {
	if answer == "" || s.Template == nil {
		return answer
	}
	_, think := parse.Detect(s.Text)
	if !parse.Opens(s.Texts.Parser, think, prompt) {
		return answer
	}
	if think.Close == "" {
		think = parse.Thinks(s.Texts.Parser)
	}
	return think.Close + "\n\n" + answer
}

// plain is a conversation for a model that knows of none.
func (s *Style) plain(c Conversation) (string, error) {
	var text strings.Builder
	for _, m := range c.Messages {
		if m.Role == "system" && m.Content != "" {
			return "", fmt.Errorf("%s: %w, which a system text would go into", s.name, chat.ErrNoTemplate)
		}
		text.WriteString(m.Content)
	}
	if len(c.Tools) > 0 {
		return "", fmt.Errorf("%s: %w, which tools would go into", s.name, chat.ErrNoTemplate)
	}
	if c.Think != nil {
		return "", fmt.Errorf("%s: %w, which could make it think or not", s.name, chat.ErrNoTemplate)
	}
	return text.String(), nil
}

// shown puts the model's own tokens for pictures into the texts of the messages that show some.
func (c Conversation) shown(m Model) (Conversation, error) {
	c.Messages = slices.Clone(c.Messages)
	rest := c.Pictures
	c.Pictures = nil
	for i, message := range c.Messages {
		n := 0
		for _, p := range message.Parts {
			if p.Type == "image" {
				n++
			}
		}
		if n = min(n, len(rest)); n == 0 {
			continue
		}
		text, pictures, err := m.ShowPictures(message.Content, rest[:n])
		if err != nil {
			return c, err
		}
		rest = rest[n:]
		c.Pictures = append(c.Pictures, pictures...)
		c.Messages[i].Parts, c.Messages[i].Content = nil, text
	}
	return c, nil
}

// parseTools is what a parser has to know of tools.
func parseTools(tools []chat.Tool) []parse.Tool {
	var list []parse.Tool
	for _, t := range tools {
		if t.Value == nil {
			continue
		}
		fn := t.Value
		if f, ok := fn.Get("function"); ok {
			if d, ok := f.(*jinja.Dict); ok {
				fn = d
			}
		}
		name, _ := fn.Get("name")
		text, ok := name.(string)
		if !ok {
			continue
		}
		one := parse.Tool{Name: text}
		if schema, ok := fn.Get("parameters"); ok {
			if s, err := jinja.EncodeJSON(schema); err == nil {
				one.Parameters = []byte(s)
			}
		}
		list = append(list, one)
	}
	return list
}

// Reader takes the model's text apart; without a parser all of it is the answer. It is for one answer.
type Reader struct{ parser parse.Parser }

// Feed takes the next text and gives what is certain by now.
func (r Reader) Feed(text string) []parse.Event {
	switch {
	case r.parser != nil:
		return r.parser.Feed(text)
	case text != "":
		return []parse.Event{{Kind: parse.Content, Text: text}}
	}
	return nil
}

// Close gives the rest. The error is that of the first call that could not be read, whose text is among the events.
func (r Reader) Close() ([]parse.Event, error) {
	if r.parser == nil {
		return nil, nil
	}
	return r.parser.Close()
}
