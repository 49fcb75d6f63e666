package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// summarize asks a model for a summary of the conversation before it.
const summarize = `Stop here and write a summary of this conversation for another assistant, who continues it ` +
	`without seeing it. Say what the user wants, what was done and decided and why, what was found out (names of files, ` +
	`commands, values, errors), what is not finished, and what comes next. Write the summary only. Do not call tools.`

// summarizer has a model sum up a conversation.
type summarizer struct {
	api          *api
	model        *server.Model
	conversation prompt.Conversation
	options      params.Options
	begun        time.Time
	queued       func() // called when the model has queued the request; may be nil
}

// summarizer returns the summarizer of an exchange. think is what the request says about thinking.
func (s *api) summarizer(e *exchange, think params.Thinking, o params.Options, begun time.Time) (*summarizer, error) {
	c := e.conversation
	think.Set(&c.Request)
	c.Messages = append(c.Messages[:len(c.Messages):len(c.Messages)], chat.Message{Role: "user", Content: summarize})
	var err error
	_, c.Tools, err = e.tools.Use(tools.Choice{}, nil)
	return &summarizer{api: s, model: e.model, conversation: c, options: o, begun: begun}, err
}

// run returns the summary. The tools of the request are shown first, so that the prompt shares its beginning with those
// before it. A model that calls one of them instead of answering is asked again without.
func (z *summarizer) run(ctx context.Context) (text string, o server.Outcome, err error) {
	c := z.conversation
	text, o, err = z.attempt(ctx, c)
	if err == nil && text == "" && len(c.Tools) > 0 {
		c.Tools = nil
		text, o, err = z.attempt(ctx, c)
	}
	if err == nil && text == "" {
		err = wire.Errorf(http.StatusInternalServerError,
			"the model wrote no summary; try again, or begin a new conversation")
	}
	return text, o, err
}

// attempt returns a response to a conversation, of which the oldest messages are left out if it is too long.
func (z *summarizer) attempt(ctx context.Context, c prompt.Conversation) (string, server.Outcome, error) {
	p, err := z.api.prompt(ctx, z.model, c, true, z.options.NumPredict)
	if err != nil {
		return "", server.Outcome{}, err
	}
	jobs, err := z.api.chatJobs(z.model, p, 1, server.ToolUse{}, params.Format{}, z.options, params.LogProbOptions{})
	if err != nil {
		return "", server.Outcome{}, err
	}
	jobs[0].Begun, jobs[0].Request.Queued = z.begun, z.queued
	var text strings.Builder
	o, err := z.api.core.Run(ctx, jobs[0], func(p server.Piece) error {
		text.WriteString(p.Text)
		return nil
	})
	return strings.TrimSpace(text.String()), o, err
}

// compactRequest is the body of /v1/responses/compact.
type compactRequest struct {
	responseInput
	Reasoning params.Thinking `json:"reasoning"`
	sampling
}

// compactJSON is the response of /v1/responses/compact: the user's messages, and a summary of everything.
type compactJSON struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Output    []json.RawMessage `json:"output"`
	Usage     *responseUsage    `json:"usage"`
}

// compact is POST /v1/responses/compact.
func (s *api) compact(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q compactRequest
	if err := read(r, &q); err != nil {
		return err
	}
	e, err := s.exchange(r.Context(), owner(r), &q.responseInput)
	if err != nil {
		return err
	}
	o, err := q.options(nil, "")
	if err != nil {
		return err
	}
	z, err := s.summarizer(e, q.Reasoning, o, begun)
	if err != nil {
		return err
	}
	text, done, err := z.run(r.Context())
	if err != nil {
		return err
	}
	last, err := wire.Encode(summaryItem(text))
	if err != nil {
		return err
	}
	out := compactJSON{ID: server.NewID("resp_"), Object: "response.compaction", CreatedAt: begun.Unix(),
		Usage: usageOfResponse(done)}
	for _, it := range e.all {
		if it.IsFromUser() {
			_, raw := it.Stored()
			out.Output = append(out.Output, raw)
		}
	}
	out.Output = append(out.Output, last)
	return wire.WriteJSON(w, out)
}

func usageOfResponse(o server.Outcome) *responseUsage {
	s := o.Stats
	return &responseUsage{s.PromptTokens, promptTokens{s.CachedTokens}, s.Tokens, reasoningTokens{o.Thought},
		s.PromptTokens + s.Tokens}
}
