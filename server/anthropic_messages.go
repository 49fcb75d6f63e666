package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/runtime"
)

// messages is POST /v1/messages: it generates the next message of a conversation.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Request-Id", newID("req_"))
	begun := time.Now()
	var q messagesRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	switch {
	case q.MaxTokens == nil:
		return badParam("max_tokens", "missing")
	case *q.MaxTokens < 0:
		return badParam("max_tokens", "must not be negative: %d", *q.MaxTokens)
	}
	m, built, err := s.messagesPrompt(r, &q)
	if err != nil {
		return err
	}
	if n, limit := len(built.IDs), m.Context(); n >= limit {
		return fmt.Errorf("%s: %d tokens > %d maximum: %w", tooLong, n, limit-1, prompt.ErrLong)
	}
	j, err := s.messagesJob(m, built, &q)
	if err != nil {
		return err
	}
	j.begun = begun
	message := messageJSON{ID: newID("msg_"), Type: "message", Role: assistant, Model: m.name(),
		Content: []blockJSON{}, Usage: messagesUsage{Input: len(built.IDs)}}
	var b blocks
	if q.Stream {
		b.stream = newMessageStream(w, message, s.pingInterval())
		defer b.stream.stop()
	}
	o, err := s.run(r.Context(), j, func(p piece) error { return q.piece(&b, p) })
	if err != nil {
		return err
	}
	if err := b.close(); err != nil {
		return err
	}
	end, usage := q.stopReason(o), messagesUsageOf(o.stats)
	usage.Details = &outputDetails{o.thought}
	if *q.MaxTokens == 0 {
		end, usage = endDelta{StopReason: new(stopLength)}, messagesUsage{Input: usage.Input, Read: usage.Read}
	}
	if !q.Stream {
		message.Content = append(message.Content, b.list...)
		message.StopReason, message.StopSequence, message.Usage = end.StopReason, end.StopSequence, usage
		return writeJSON(w, message)
	}
	err = b.stream.send("message_delta", struct {
		Type  string        `json:"type"`
		Delta endDelta      `json:"delta"`
		Usage messagesUsage `json:"usage"`
	}{"message_delta", end, usage})
	if err != nil {
		return err
	}
	return b.stream.send("message_stop", struct {
		Type string `json:"type"`
	}{"message_stop"})
}

// messagesPrompt builds the prompt of a request.
func (s *Server) messagesPrompt(r *http.Request, q *messagesRequest) (*model, *prompt.Prompt, error) {
	m, err := s.find(r.Context(), q.Model)
	if err != nil {
		return nil, nil, err
	}
	style, err := m.chatStyle()
	if err != nil {
		return nil, nil, err
	}
	c, err := q.conversation(style)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.makePrompt(r.Context(), m, style, c)
	return m, p, err
}

// messagesJob builds the job of a request.
func (s *Server) messagesJob(m *model, p *prompt.Prompt, q *messagesRequest) (job, error) {
	use, err := q.toolUse()
	if err != nil {
		return job{}, err
	}
	f, err := q.format()
	if err != nil {
		return job{}, err
	}
	j, err := s.job(m, p, q.options(m), format{}, logProbOptions{})
	if err != nil {
		return j, err
	}
	if use.single && len(use.offers) > 0 {
		j.calls = 1
	}
	if j.request.Format, err = use.format(m, p, f); err != nil {
		return j, err
	}
	q.limitThinking(&j.request.Format, p)
	return j, nil
}

// limitThinking ends thinking when the budget is used up, unless another format already applies during thinking.
func (q *messagesRequest) limitThinking(f *runtime.Format, p *prompt.Prompt) {
	switch {
	case q.Thinking == nil || q.Thinking.Budget == nil:
	case p.Thinking != "" && (f.Kind == "" || f.After == p.Thinking):
		f.After, f.Within = p.Thinking, *q.Thinking.Budget
	case f.Kind == "" && p.Tags.Open != "":
		f.After, f.Within, f.Open = p.Tags.Close, *q.Thinking.Budget, p.Tags.Open
	}
}

// options returns the request's parameters over the model's defaults. The model's stop texts stay in effect.
func (q *messagesRequest) options(m *model) options {
	o := options{Temperature: q.Temperature, TopK: q.TopK, TopP: q.TopP, NumPredict: new(max(*q.MaxTokens, 1))}
	if len(q.StopSequences) > 0 {
		o.Stop = slices.Concat(m.Defaults().Stop, q.StopSequences)
	}
	return o
}

// piece adds a piece of the response. Thinking is dropped unless the client asked for it: other clients expect the text
// in the first block.
func (q *messagesRequest) piece(b *blocks, p piece) error {
	if b.stream != nil {
		if err := b.stream.begin(messagesUsageOf(p.stats)); err != nil {
			return err
		}
	}
	if *q.MaxTokens == 0 {
		return nil // the client only wants to fill the prefix cache
	}
	if t := q.Thinking; t != nil && t.Type != "disabled" && t.Display != "omitted" && p.thinking != "" {
		if err := b.add(thinkingBlock, p.thinking); err != nil {
			return err
		}
	}
	if p.text != "" {
		if err := b.add(textBlock, p.text); err != nil {
			return err
		}
	}
	for _, c := range p.calls {
		if err := b.call(c); err != nil {
			return err
		}
	}
	return nil
}

// countTokens is POST /v1/messages/count_tokens: it returns the number of prompt tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Request-Id", newID("req_"))
	var q messagesRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	m, built, err := s.messagesPrompt(r, &q)
	if err != nil {
		return err
	}
	n, err := m.CountPrompt(r.Context(), built.IDs, built.Pictures)
	if err != nil {
		return err
	}
	return writeJSON(w, struct {
		Tokens int `json:"input_tokens"`
	}{n})
}
