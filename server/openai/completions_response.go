package openai

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// textCompletionJSON is a response of /v1/completions, or a chunk of a stream.
type textCompletionJSON struct {
	ID          string           `json:"id"`
	Object      string           `json:"object"`
	Created     int64            `json:"created"`
	Model       string           `json:"model"`
	Fingerprint string           `json:"system_fingerprint"`
	Choices     []textChoiceJSON `json:"choices"`
	Usage       *usageJSON       `json:"usage,omitempty"`
}

type textChoiceJSON struct {
	Index    int           `json:"index"`
	Text     string        `json:"text"`
	LogProbs *textLogProbs `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`
}

// textWriter writes the choices of one request, as a stream or as one response.
type textWriter struct {
	m       *server.Model
	frame   textCompletionJSON // without choices
	events  *wire.Stream       // nil: not streamed
	logs    bool
	choices []textChoice
}

// textChoice is the state of one choice.
type textChoice struct {
	echo   *echo // the prompt, until it is written; nil: none
	text   strings.Builder
	logs   *textLogProbs // of the response
	places *textPlaces
}

// echo is a prompt that is repeated before a completion.
type echo struct {
	text string
	ids  []int32
}

func newTextWriter(events *wire.Stream, m *server.Model, n int, logs bool) *textWriter {
	a := &textWriter{m: m, logs: logs, choices: make([]textChoice, n), events: events}
	a.frame = textCompletionJSON{ID: server.NewID("cmpl-"), Object: "text_completion", Created: time.Now().Unix(),
		Model: m.RequestedName(), Fingerprint: fingerprint(m)}
	return a
}

// newEcho returns the prompt that is repeated, whose token ids are given.
func (s *api) newEcho(ctx context.Context, m *server.Model, p promptInput, ids []int32) (e *echo, err error) {
	e = &echo{text: p.text, ids: ids}
	if p.ids == nil {
		return e, nil
	}
	if slices.Min(p.ids) < 0 {
		return nil, wire.BadParam("prompt", "token ids must not be negative")
	}
	e.text, err = s.core.Decode(ctx, m, p.ids, true)
	return e, err
}

// add returns the text and the logprobs that a piece adds to a choice. The logprobs are nil if they are not wanted.
func (a *textWriter) add(i int, p server.Piece) (text string, logs *textLogProbs) {
	c := &a.choices[i]
	e := c.echo
	c.echo = nil
	if e != nil {
		text = e.text
	}
	if a.logs {
		logs = newTextLogProbs()
		if c.places == nil {
			c.places = newTextPlaces(a.m, e)
			if e != nil {
				logs.addFirst(a.m, e.ids[0], c.places)
			}
		}
		logs.add(a.m, p.PromptLogProbs, c.places)
		said := p.LogProbs
		if p.EndLogProb != nil {
			said = append(said[:len(said):len(said)], *p.EndLogProb)
		}
		if len(said) > 0 {
			c.places.generated()
		}
		logs.add(a.m, said, c.places)
	}
	return text + p.Text, logs
}

func (a *textWriter) collect(i int, p server.Piece) {
	c := &a.choices[i]
	text, logs := a.add(i, p)
	c.text.WriteString(text)
	if c.logs == nil {
		c.logs = logs
	} else {
		c.logs.append(logs)
	}
}

func (a *textWriter) response(all []server.Outcome, usage usageJSON) textCompletionJSON {
	out := a.frame
	out.Usage = &usage
	for i := range a.choices {
		c := &a.choices[i]
		out.Choices = append(out.Choices,
			textChoiceJSON{Index: i, Text: c.text.String(), LogProbs: c.logs, Finish: finishReason(all[i])})
	}
	return out
}

func (a *textWriter) sendPiece(i int, p server.Piece) error {
	if p.Empty() && a.choices[i].echo == nil && !(a.logs && p.EndLogProb != nil) {
		return nil
	}
	text, logs := a.add(i, p)
	return a.send([]textChoiceJSON{{Index: i, Text: text, LogProbs: logs}}, nil)
}

func (a *textWriter) send(choices []textChoiceJSON, usage *usageJSON) error {
	chunk := a.frame
	chunk.Choices, chunk.Usage = choices, usage
	return a.events.Send("", chunk)
}

// end sends the last chunks of a stream.
func (a *textWriter) end(all []server.Outcome, usage usageJSON, withUsage bool) error {
	for i, o := range all {
		if err := a.send([]textChoiceJSON{{Index: i, Finish: finishReason(o)}}, nil); err != nil {
			return err
		}
	}
	if withUsage {
		if err := a.send([]textChoiceJSON{}, &usage); err != nil {
			return err
		}
	}
	return a.events.Done()
}
