package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/runtime"
)

// Model is the model for which a prompt is built: a *processor.Processor.
type Model interface {
	BOSEOS() (bos, eos string)
	EncodeRendered(ctx context.Context, text string, bos bool) ([]int32, error)
	ShowPictures(text string, pictures []runtime.Picture) (string, []runtime.Picture, error)
	PicturePlaces(prompt []int32) int
	CheckPictures() error
}

// Conversation is the input of a prompt. Begin sets BOS and EOS of the request to the model's.
type Conversation struct {
	chat.Request
	Pictures []runtime.Picture // one for each "image" part of the messages, in order, with distinct IDs
	// Continue makes the model continue the last message, if that is its own and has no calls. Otherwise it begins a new
	// one.
	Continue bool
	Budget   Budget // for the memory to build the prompt; nil: unlimited

	final, thought string // the message that the model continues
}

// Prompt is the prompt of a conversation, with a reader for the generated text.
type Prompt struct {
	IDs      []int32
	Pictures []runtime.Picture // in the order of their positions
	Special  bool              // the reader needs special tokens in the text
	Dialogue bool              // made from a conversation: somebody probably waits for the response
	Reader   Reader
	Thinking string     // tag that ends thinking, if the prompt ends within thinking; a format applies after it
	Tags     parse.Tags // thinking tags that the model may generate, if Thinking is empty
	// FinalTag begins the final message of a response that has several, and FinalRules are the EBNF rules of the text
	// before it; "": a response is one message. See [parse.FinalRules].
	FinalTag, FinalRules string
	Continues            bool    // the response continues the prompt's text, as of a message that the model continues
	EndTokens            []int32 // end the response in addition to the model's

	newParser func() (parse.Parser, error) // for a reader; nil: no parser
}

// Again returns a copy of the prompt for another response, with its own reader. Ids and pictures are shared.
func (p *Prompt) Again() (*Prompt, error) {
	again := *p
	if p.newParser == nil {
		return &again, nil
	}
	var err error
	again.Reader.parser, err = p.newParser()
	return &again, err
}

// TextParts returns the parts of a message with n pictures followed by text.
func TextParts(text string, n int) []chat.Part {
	return append(slices.Repeat([]chat.Part{{Type: "image"}}, n), chat.Part{Type: "text", Text: text})
}

// Begin builds the prompt. Without a template, the prompt is the concatenation of the messages' texts.
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
		c.Budget = unlimited{}
	}
	with, err := s.choose(ctx, c.Request)
	if err != nil {
		return nil, err
	}
	p, err := with.begin(ctx, m, c)
	return p, s.named(err)
}

func (s chosen) begin(ctx context.Context, m Model, c Conversation) (*Prompt, error) {
	rules, tag := parse.FinalRules(s.Texts.Parser)
	text, ids, c, err := s.fitted(ctx, m, c)
	if err != nil {
		return nil, err
	}
	p := &Prompt{IDs: ids, Pictures: c.Pictures, Dialogue: true,
		Continues: s.Template == nil || c.final+c.thought != ""}
	if s.Template == nil || !parse.Known(s.Texts.Parser) {
		return p, nil
	}
	if c.final == "" {
		p.FinalTag, p.FinalRules = tag, rules
	}
	_, think := parse.Detect(s.Text)
	o := parse.Options{Tools: parseTools(c.Tools), Think: think, Thinking: parse.Opens(s.Texts.Parser, think, text)}
	if think == (parse.Tags{}) {
		think = parse.Thinks(s.Texts.Parser)
	}
	o.Thinking = o.Thinking || c.thought != "" && c.final == ""
	if o.Thinking {
		p.Thinking = think.Close
	} else {
		p.Tags = think
	}
	p.newParser = func() (parse.Parser, error) { return parse.New(s.Texts.Parser, o) }
	p.Special = true
	return p.Again()
}

// prepared changes a request into what the template expects.
func (s chosen) prepared(r chat.Request) chat.Request {
	_, tag := parse.FinalRules(s.Texts.Parser)
	switch {
	case tag != "" && s.Template != nil:
		return harmony(r)
	case s.Text != "" && s.Text == chat.BuiltIn("deepseek4"):
		r.Messages = inCallOrder(r.Messages)
	}
	return r
}

// render returns the prompt's text and its token ids.
func (s chosen) render(ctx context.Context, m Model, c Conversation) (text string, ids []int32, err error) {
	// A Modelfile's template leaves BOS to the tokenizer. Templates of checkpoints write it themselves.
	bos := s.fromModelfile
	if s.Template == nil {
		bos = true
		text, err = s.plain(c)
	} else {
		text, err = Render(ctx, c.Budget, s.Template, s.prepared(c.Request))
	}
	if err == nil {
		text += s.messageStart(text, c)
		ids, err = Encode(ctx, c.Budget, text, func(ctx context.Context, text string) ([]int32, error) {
			return m.EncodeRendered(ctx, text, bos)
		})
	}
	return text, ids, err
}

// plain returns the prompt for a model without a template.
func (s *Style) plain(c Conversation) (string, error) {
	var text strings.Builder
	for _, m := range c.Messages {
		if m.Role == "system" && m.Content != "" {
			return "", fmt.Errorf("%w, which a system message requires", chat.ErrNoTemplate)
		}
		text.WriteString(m.Content)
	}
	if len(c.Tools) > 0 {
		return "", fmt.Errorf("%w, which tools require", chat.ErrNoTemplate)
	}
	return text.String(), nil
}

// withPictureTokens replaces image parts by the model's picture tokens in the messages' texts.
func (c Conversation) withPictureTokens(m Model) (Conversation, error) {
	c.Messages = slices.Clone(c.Messages)
	rest := c.Pictures
	c.Pictures = nil
	for i, message := range c.Messages {
		n := min(pictureParts(message), len(rest))
		if n == 0 {
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

// pictureParts counts the pictures of a message.
func pictureParts(m chat.Message) (n int) {
	for _, p := range m.Parts {
		if p.Type == "image" {
			n++
		}
	}
	return n
}

// parseTools converts tools to what a parser needs. It leaves out those without a name.
func parseTools(tools []chat.Tool) (list []calls.Tool) {
	for _, t := range tools {
		f, err := t.Function()
		if err != nil && t.Value != nil {
			f, err = t.Nested().Function()
		}
		if err == nil {
			list = append(list, calls.Tool{Name: f.Name, Parameters: f.Parameters})
		}
	}
	return list
}

// Reader parses the generated text of one response. Without a parser, all text is content.
type Reader struct{ parser parse.Parser }

// Feed parses more text and returns the events that are complete.
func (r Reader) Feed(text string) []parse.Event {
	switch {
	case r.parser != nil:
		return r.parser.Feed(text)
	case text != "":
		return []parse.Event{{Kind: parse.Content, Text: text}}
	}
	return nil
}

// Close returns the remaining events. The error is that of the first malformed call, whose text is among the events.
func (r Reader) Close() ([]parse.Event, error) {
	if r.parser == nil {
		return nil, nil
	}
	return r.parser.Close()
}
