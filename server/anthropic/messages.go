package anthropic

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// messages is POST /v1/messages: it generates the next message of a conversation.
func (s *api) messages(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Request-Id", server.NewID("req_"))
	begun := time.Now()
	var q messagesRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	switch {
	case q.MaxTokens == nil:
		return wire.BadParam("max_tokens", "missing")
	case *q.MaxTokens < 0:
		return wire.BadParam("max_tokens", "must not be negative: %d", *q.MaxTokens)
	}
	var b blocks
	if q.Stream {
		b.stream = newMessageStream(w, s.core.Silence())
		defer b.stream.events.Stop()
	}
	m, built, tools, err := s.messagesPrompt(r, &q)
	if err != nil {
		return err
	}
	if n, limit := len(built.IDs), m.Context(); n >= limit {
		return prompt.TooLong("%s: %d tokens > %d maximum", tooLong, n, limit-1)
	}
	j, err := s.messagesJob(m, built, &q, tools)
	if err != nil {
		return err
	}
	j.Begun = begun
	marks, err := s.breakpoints(r.Context(), m, &q, built, tools)
	if err != nil {
		return err
	}
	j.Request.Pins = marks.pins()
	message := messageJSON{ID: server.NewID("msg_"), Type: "message", Role: chat.Assistant, Model: m.RequestedName(),
		Content: []blockJSON{}, Usage: messagesUsage{Input: len(built.IDs)}}
	b.family = tools.family
	if q.Stream {
		b.stream.start(message)
		j.Request.Queued = b.stream.events.Open
	}
	o, err := s.core.Run(r.Context(), j, func(p server.Piece) error { return q.piece(&b, p, marks) })
	if err != nil {
		return err
	}
	if err := b.close(); err != nil {
		return err
	}
	end, usage := q.stopReason(o), marks.usage(o.Stats)
	usage.Details = &outputDetails{o.Thought}
	if *q.MaxTokens == 0 {
		end = endDelta{StopReason: new(stopLength)}
		usage = messagesUsage{Input: usage.Input, Created: usage.Created, Read: usage.Read, Creation: usage.Creation}
	}
	if !q.Stream {
		message.Content = append(message.Content, b.list...)
		message.StopReason, message.StopSequence, message.Usage = end.StopReason, end.StopSequence, usage
		message.LeftOut = o.LeftOut
		return wire.WriteJSON(w, message)
	}
	err = b.stream.events.Send("message_delta", struct {
		Type    string        `json:"type"`
		Delta   endDelta      `json:"delta"`
		Usage   messagesUsage `json:"usage"`
		LeftOut []string      `json:"left_out,omitempty"` // an extension
	}{"message_delta", end, usage, o.LeftOut})
	if err != nil {
		return err
	}
	return b.stream.events.Last("message_stop", typeJSON{"message_stop"})
}

// messagesPrompt builds the prompt of a request. It also returns the tools that the model is offered.
func (s *api) messagesPrompt(r *http.Request, q *messagesRequest) (*server.Model, *prompt.Prompt, offers, error) {
	m, err := s.core.Find(r.Context(), q.Model)
	if err != nil {
		return nil, nil, offers{}, err
	}
	c, tools, err := q.conversation(m.Style, s.newReader(r.Context(), m))
	if err != nil {
		return nil, nil, tools, err
	}
	p, err := s.core.MakePrompt(r.Context(), m, m.Style, c)
	return m, p, tools, err
}

// messagesJob builds the job of a request.
func (s *api) messagesJob(m *server.Model, p *prompt.Prompt, q *messagesRequest, tools offers) (server.Job, error) {
	if err := q.checkStops(m); err != nil {
		return server.Job{}, err
	}
	use, err := tools.use(q.ToolChoice)
	if err != nil {
		return server.Job{}, err
	}
	f, err := q.format()
	if err != nil {
		return server.Job{}, err
	}
	j, err := s.core.NewJob(m, p, q.options(m.Defaults().Stop), params.Format{}, params.LogProbOptions{})
	if err != nil {
		return j, err
	}
	use.Schemas = q.SchemaOptions
	if use.Single && len(use.Offers) > 0 {
		j.Calls = 1
	}
	if j.Request.Format, err = use.Format(m, p, f); err != nil {
		return j, err
	}
	q.limitThinking(&j.Request.Format, p)
	return j, nil
}

// limitThinking ends thinking when the budget is used up, unless another format already applies during thinking.
func (q *messagesRequest) limitThinking(f *runtime.Format, p *prompt.Prompt) {
	switch {
	case q.Thinking.Budget == nil:
	case p.Thinking != "" && (f.Kind == "" || f.After == p.Thinking):
		f.After, f.Within = p.Thinking, *q.Thinking.Budget
	case f.Kind == "" && p.Tags.Open != "":
		f.After, f.Within, f.Open = p.Tags.Close, *q.Thinking.Budget, p.Tags.Open
	}
}

// checkStops refuses stop texts that exceed the limits.
func (q *messagesRequest) checkStops(m *server.Model) error {
	if most := limits.Stops - len(m.Defaults().Stop); len(q.StopSequences) > most {
		return wire.BadParam("stop_sequences", "has %d texts, at most %d are allowed", len(q.StopSequences), most)
	}
	for i, s := range q.StopSequences {
		if len(s) > limits.StopText {
			return wire.BadParam(fmt.Sprintf("stop_sequences.%d", i), "has %d bytes, at most %d are allowed", len(s),
				limits.StopText)
		}
	}
	return nil
}

// options returns the request's parameters. The model's stop texts stay in effect.
func (q *messagesRequest) options(modelStops []string) params.Options {
	o := params.Options{Extensions: params.Extensions{Urgency: q.Urgency}}
	o.Temperature, o.TopK, o.TopP, o.NumPredict = q.Temperature, q.TopK, q.TopP, new(max(*q.MaxTokens, 1))
	if len(q.StopSequences) > 0 {
		o.Stop = slices.Concat(modelStops, q.StopSequences)
	}
	return o
}

// piece adds a piece of the response. Thinking is dropped unless the client asked for it: other clients expect the text
// in the first block.
func (q *messagesRequest) piece(b *blocks, p server.Piece, marks breakpoints) error {
	if b.stream != nil {
		if err := b.stream.begin(marks.usage(p.Stats)); err != nil {
			return err
		}
	}
	if *q.MaxTokens == 0 {
		return nil // the client only wants to fill the prefix cache
	}
	if p.Thinking != "" && q.Thinking.shown() {
		if err := b.add(thinkingBlock, p.Thinking); err != nil {
			return err
		}
	}
	if p.Text != "" {
		if err := b.add(textBlock, p.Text); err != nil {
			return err
		}
	}
	for _, c := range p.Calls {
		if err := b.call(c); err != nil {
			return err
		}
	}
	return nil
}

// countTokens is POST /v1/messages/count_tokens: it returns the number of prompt tokens.
func (s *api) countTokens(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Request-Id", server.NewID("req_"))
	var q messagesRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	q.Compaction = nil // the count is that of the messages as they are
	m, built, _, err := s.messagesPrompt(r, &q)
	if err != nil {
		return err
	}
	n, err := m.CountPrompt(r.Context(), built.IDs, built.Pictures)
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, struct {
		Tokens int `json:"input_tokens"`
	}{n})
}
