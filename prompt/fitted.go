package prompt

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/fit"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/internal/limits"
)

// shapes are what a model's templates accept, by their texts. They are found out when a request first needs them.
type shapes struct {
	mu     sync.Mutex
	byText map[string]*fit.Shape
}

// get returns the shape of the template with a text. probe finds it out.
func (k *shapes) get(text string, probe func() (*fit.Shape, error)) (*fit.Shape, error) {
	if k == nil {
		return probe()
	}
	k.mu.Lock()
	defer k.mu.Unlock() // a second request waits for what the first one finds out
	if s := k.byText[text]; s != nil {
		return s, nil
	}
	s, err := probe()
	if err != nil {
		return nil, err
	}
	if k.byText == nil {
		k.byText = map[string]*fit.Shape{}
	}
	k.byText[text] = s
	return s, nil
}

// probe finds out what the template accepts.
func (s chosen) probe(ctx context.Context, c Conversation) (*fit.Shape, error) {
	return fit.Probe(ctx, func(ctx context.Context, r chat.Request) (string, error) {
		r.BOS, r.EOS = c.BOS, c.EOS
		r.Options.Limits.Steps = limits.TemplateProbeSteps
		return Render(ctx, c.Budget, s.Template, r)
	})
}

// fitted renders a conversation as the template accepts it. It returns the prompt's text and ids, and the conversation
// that gave them.
func (s chosen) fitted(ctx context.Context, m Model, c Conversation) (string, []int32, Conversation, error) {
	c.BOS, c.EOS = m.BOSEOS()
	if s.Template == nil {
		return s.withPictures(ctx, m, c)
	}
	c = s.continued(c)
	shape, err := s.shapes.get(s.Text, func() (*fit.Shape, error) { return s.probe(ctx, c) })
	if err != nil {
		return "", nil, c, err
	}
	given := c.Messages
	shape.Think(&c.Request)
	c.Messages = shape.Fit(given, len(c.Tools) > 0)
	text, ids, out, err := s.withPictures(ctx, m, c)
	if !errors.Is(err, jinja.ErrRender) || errors.Is(err, jinja.ErrLimit) {
		return text, ids, out, err
	}
	again := c
	again.Messages = shape.Strict(given)
	if text, ids, out, err := s.withPictures(ctx, m, again); err == nil {
		return text, ids, out, nil
	}
	return "", nil, c, s.located(ctx, c, err)
}

// withPictures renders a conversation. If the template does not support pictures, the texts get the model's picture
// tokens.
func (s chosen) withPictures(ctx context.Context, m Model, c Conversation) (string, []int32, Conversation, error) {
	text, ids, err := s.render(ctx, m, c)
	if len(c.Pictures) > 0 && (err != nil || s.Template == nil || m.PicturePlaces(ids) < len(c.Pictures)) {
		if c, err = c.withPictureTokens(m); err == nil {
			text, ids, err = s.render(ctx, m, c)
		}
	}
	return text, ids, c, err
}

// located says which message the template refuses: the first one with which the conversation fails in this way.
func (s chosen) located(ctx context.Context, c Conversation, err error) error {
	all := c.Messages
	n := sort.Search(len(all)-1, func(i int) bool {
		c.Messages = all[:i+1]
		_, failed := Render(ctx, c.Budget, s.Template, s.prepared(c.Request))
		return failed != nil && failed.Error() == err.Error()
	})
	if n >= len(all) || all[n].At == "" {
		return err
	}
	return fmt.Errorf("%s: the model's chat template refuses this message: %w", all[n].At, err)
}

// continued takes the message that the model continues out of a conversation.
func (s chosen) continued(c Conversation) Conversation {
	last := len(c.Messages) - 1
	if !c.Continue || last < 0 {
		return c
	}
	m := c.Messages[last]
	if m.Role != chat.Assistant || len(m.ToolCalls) > 0 {
		return c
	}
	for _, p := range m.Parts {
		if p.Type != "text" {
			return c
		}
	}
	c.Messages, c.final, c.thought = c.Messages[:last:last], m.Content, m.Reasoning
	if _, tag := parse.FinalRules(s.Texts.Parser); tag != "" && c.final == "" {
		c.thought = "" // a thought alone is a message of its own
	}
	return c
}

// messageStart returns the start of the model's message. If the prompt ends within thinking, it ends the thinking
// first.
func (s chosen) messageStart(prompt string, c Conversation) string {
	if c.final == "" && c.thought == "" || s.Template == nil {
		return ""
	}
	_, think := parse.Detect(s.Text)
	open := parse.Opens(s.Texts.Parser, think, prompt)
	if think.Close == "" {
		think = parse.Thinks(s.Texts.Parser)
	}
	if _, tag := parse.FinalRules(s.Texts.Parser); tag != "" {
		if c.thought != "" {
			return think.Open + c.thought + think.Close + "<|start|>assistant" + tag + c.final
		}
		return tag + c.final
	}
	start := ""
	switch {
	case c.thought != "" && think.Close != "":
		if !open {
			start = think.Open + "\n"
		}
		start += c.thought
		if c.final != "" {
			start += "\n" + think.Close + "\n\n"
		}
	case open:
		start = think.Close + "\n\n"
	}
	return start + c.final
}
