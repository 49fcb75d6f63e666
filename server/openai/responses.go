package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/ingotml/ingot/server/openai/items"
	"github.com/ingotml/ingot/server/openai/stored"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// responseRequest is the body of /v1/responses.
type responseRequest struct {
	responseInput

	ToolChoice tools.Choice    `json:"tool_choice"`
	Parallel   *bool           `json:"parallel_tool_calls"`
	Text       responseText    `json:"text"`
	Reasoning  params.Thinking `json:"reasoning"`

	MaxTokens   *int            `json:"max_output_tokens"`
	TopLogProbs int             `json:"top_logprobs"`
	Include     []string        `json:"include"`
	Stream      bool            `json:"stream"`
	Metadata    json.RawMessage `json:"metadata"`
	Store       *bool           `json:"store"`
	Background  bool            `json:"background"`
	sampling
	params.SchemaOptions
}

// responseInput is what the requests about a conversation have in common.
type responseInput struct {
	Model        string        `json:"model"`
	Input        items.Input   `json:"input"`
	Instructions *string       `json:"instructions"`
	Tools        responseTools `json:"tools"`
	Previous     string        `json:"previous_response_id"`
	Truncation   string        `json:"truncation"` // auto or disabled

	Conversation unsupported `json:"conversation"`
	Prompt       unsupported `json:"prompt"`
}

// responseTools are tools in the form of the responses API.
type responseTools tools.List

type responseText struct {
	Format responseFormat `json:"format"`
}

// Values of include.
const (
	includeLogProbs  = "message.output_text.logprobs"
	includeReasoning = "reasoning.encrypted_content"
)

func (q *responseInput) check() error {
	if err := q.Conversation.check("conversation"); err != nil {
		return wire.BadParam("conversation",
			"this server keeps no conversations: send the items, or store responses and send previous_response_id")
	}
	return q.Prompt.check("prompt")
}

func (q *responseRequest) check() error {
	if err := q.responseInput.check(); err != nil {
		return err
	}
	switch {
	case q.Background && q.Stream:
		return wire.BadParam("background", "a response in the background is not streamed: leave out stream, and get it later")
	case q.Background && q.Store != nil && !*q.Store:
		return wire.BadParam("background", "a response in the background is stored: leave out store")
	}
	return checkTop("top_logprobs", q.TopLogProbs)
}

// stores reports whether the response is stored. By default it is not.
func (q *responseRequest) stores() bool { return q.Background || q.Store != nil && *q.Store }

// responses is POST /v1/responses.
func (s *api) responses(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q responseRequest
	if err := read(r, &q); err != nil {
		return err
	}
	a := newResponsesWriter(w, &q, s.core.Silence())
	defer a.events.Stop()
	e, err := s.exchange(r.Context(), owner(r), &q.responseInput)
	if err != nil {
		return err
	}
	run := &generation{api: s, writer: a, model: e.model}
	if err := s.prepare(r.Context(), run, e, &q); err != nil {
		return err
	}
	run.job.Begun = begun
	a.start(e, &run.job.Request)
	if run.summary != nil {
		run.summary.begun, run.summary.queued = begun, run.job.Request.Queued
	}
	if !q.stores() {
		return run.respond(r.Context())
	}
	run.response = &stored.Response{Owner: e.owner, ID: a.response.ID, Previous: q.Previous, Input: storedItems(e.own)}
	if q.Background {
		return s.inBackground(w, r, run)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	if _, err := run.store(cancel); err != nil {
		return err
	}
	return run.respond(ctx)
}

// prepare sets what generates the response of an exchange.
func (s *api) prepare(ctx context.Context, run *generation, e *exchange, q *responseRequest) error {
	o, err := q.options(q.MaxTokens, "max_output_tokens")
	if err != nil {
		return err
	}
	if e.compacts {
		run.summary, err = s.summarizer(e, q.Reasoning, o, time.Time{})
		return err
	}
	c := e.conversation
	c.Continue = true
	q.Reasoning.Set(&c.Request)
	use, shown, err := e.tools.Use(q.ToolChoice, q.Parallel)
	if err != nil {
		return err
	}
	use.Schemas = q.SchemaOptions
	c.Tools = shown
	p, err := s.prompt(ctx, e.model, c, q.Truncation == truncationAuto, q.MaxTokens)
	if err != nil {
		return err
	}
	logs := params.LogProbOptions{LogProbs: slices.Contains(q.Include, includeLogProbs) || q.TopLogProbs > 0,
		TopLogProbs: q.TopLogProbs}
	jobs, err := s.chatJobs(e.model, p, 1, use, q.Text.Format.Format, o, logs)
	if err == nil {
		run.job = jobs[0]
	}
	return err
}

// countInput is POST /v1/responses/input_tokens.
func (s *api) countInput(w http.ResponseWriter, r *http.Request) error {
	var q inputCountRequest
	if err := read(r, &q); err != nil {
		return err
	}
	e, err := s.exchange(r.Context(), owner(r), &q.responseInput)
	if err != nil {
		return err
	}
	c := e.conversation
	c.Continue = true
	q.Reasoning.Set(&c.Request)
	if _, c.Tools, err = e.tools.Use(q.ToolChoice, q.Parallel); err != nil {
		return err
	}
	p, err := s.prompt(r.Context(), e.model, c, q.Truncation == truncationAuto, nil)
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, inputCountJSON{"response.input_tokens", len(p.IDs)})
}

// inputCountRequest is the body of /v1/responses/input_tokens.
type inputCountRequest struct {
	responseInput
	ToolChoice tools.Choice    `json:"tool_choice"`
	Parallel   *bool           `json:"parallel_tool_calls"`
	Reasoning  params.Thinking `json:"reasoning"`
}

type inputCountJSON struct {
	Object string `json:"object"`
	Tokens int    `json:"input_tokens"`
}
