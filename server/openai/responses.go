package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// responseRequest is the body of /v1/responses. Nothing is stored: each request has the whole conversation.
type responseRequest struct {
	Model        string  `json:"model"`
	Input        input   `json:"input"`
	Instructions *string `json:"instructions"`

	Tools      responseTools   `json:"tools"`
	ToolChoice toolChoice      `json:"tool_choice"`
	Parallel   *bool           `json:"parallel_tool_calls"`
	Text       responseText    `json:"text"`
	Reasoning  params.Thinking `json:"reasoning"`

	MaxTokens   *int            `json:"max_output_tokens"`
	TopLogProbs int             `json:"top_logprobs"`
	Include     []string        `json:"include"`
	Stream      bool            `json:"stream"`
	Metadata    json.RawMessage `json:"metadata"`
	sampling
	params.SchemaOptions

	Previous     unsupported `json:"previous_response_id"`
	Conversation unsupported `json:"conversation"`
	Prompt       unsupported `json:"prompt"`
	Background   unsupported `json:"background"`
	Truncation   unsupported `json:"truncation"`
}

type responseText struct {
	Format    responseFormat `json:"format"`
	Verbosity unsupported    `json:"verbosity"`
}

// Values of include.
const (
	includeLogProbs  = "message.output_text.logprobs"
	includeReasoning = "reasoning.encrypted_content"
)

func (q *responseRequest) check() error {
	for _, err := range []error{
		q.Previous.check("previous_response_id"), q.Conversation.check("conversation"), q.Prompt.check("prompt"),
		q.Background.check("background"), q.Truncation.check("truncation", `"disabled"`),
		q.Text.Verbosity.check("text.verbosity", `"medium"`),
	} {
		if err != nil {
			return err
		}
	}
	if len(q.Input.messages) == 0 {
		return wire.BadParam("input", "missing or empty")
	}
	return checkTop("top_logprobs", q.TopLogProbs)
}

// messages returns the instructions and the input, and a function that returns what errors call each message.
func (q *responseRequest) messages() ([]chat.Message, func(i int) string) {
	list, before := q.Input.messages, 0
	if q.Instructions != nil && *q.Instructions != "" {
		list, before = append([]chat.Message{{Role: "system", Content: *q.Instructions}}, list...), 1
	}
	return list, func(i int) string {
		if i < before {
			return "instructions"
		}
		return fmt.Sprintf("input[%d]", q.Input.items[i-before])
	}
}

// responses is POST /v1/responses.
func (s *api) responses(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q responseRequest
	if err := read(r, &q); err != nil {
		return err
	}
	a := newResponsesWriter(w, &q, s.core.Silence())
	defer a.events.Stop()
	m, err := s.core.Find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	list, name := q.messages()
	c, err := turns(list, m.Style, name)
	if err != nil {
		return err
	}
	use, tools, err := q.ToolChoice.use(q.Tools.tools, q.Parallel)
	if err != nil {
		return err
	}
	use.Schemas = q.SchemaOptions
	c.Tools, c.Continue = tools, true
	q.Reasoning.Set(&c.Request)
	o, err := q.options(q.MaxTokens, "max_output_tokens")
	if err != nil {
		return err
	}
	logs := params.LogProbOptions{LogProbs: slices.Contains(q.Include, includeLogProbs) || q.TopLogProbs > 0,
		TopLogProbs: q.TopLogProbs}
	jobs, err := s.chatJobs(r, m, c, 1, use, q.Text.Format.Format, o, logs)
	if err != nil {
		return err
	}
	jobs[0].Begun = begun
	a.start(m, &jobs[0].Request)
	done, err := s.core.Run(r.Context(), jobs[0], a.piece)
	if err != nil {
		return err
	}
	return a.end(done)
}

// responseJSON is the response of /v1/responses.
type responseJSON struct {
	ID           string              `json:"id"`
	Object       string              `json:"object"`
	CreatedAt    int64               `json:"created_at"`
	CompletedAt  *int64              `json:"completed_at"`
	Status       string              `json:"status"`
	Error        *responseError      `json:"error"`
	Incomplete   *responseIncomplete `json:"incomplete_details"`
	Instructions *string             `json:"instructions"`
	MaxTokens    *int                `json:"max_output_tokens"`
	Model        string              `json:"model"`
	Output       []outputItem        `json:"output"`
	Parallel     bool                `json:"parallel_tool_calls"`
	Previous     *string             `json:"previous_response_id"`
	Reasoning    reasoningJSON       `json:"reasoning"`
	Background   bool                `json:"background"`
	Store        bool                `json:"store"`
	ServiceTier  string              `json:"service_tier"`
	Temperature  float64             `json:"temperature"`
	TopP         float64             `json:"top_p"`
	TopLogProbs  int                 `json:"top_logprobs"`
	Text         textJSON            `json:"text"`
	ToolChoice   json.RawMessage     `json:"tool_choice"`
	Tools        json.RawMessage     `json:"tools"`
	Truncation   string              `json:"truncation"`
	Usage        *responseUsage      `json:"usage"`
	Metadata     json.RawMessage     `json:"metadata"`
	LeftOut      []string            `json:"left_out,omitempty"` // an extension: what best_effort did not enforce
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type responseIncomplete struct {
	Reason string `json:"reason"`
}

type reasoningJSON struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type textJSON struct {
	Format json.RawMessage `json:"format"`
}

type responseUsage struct {
	Input    int             `json:"input_tokens"`
	OfInput  promptTokens    `json:"input_tokens_details"`
	Output   int             `json:"output_tokens"`
	OfOutput reasoningTokens `json:"output_tokens_details"`
	Total    int             `json:"total_tokens"`
}

type reasoningTokens struct {
	Reasoning int `json:"reasoning_tokens"`
}

// newResponse returns a response without output, and without the defaults of the model.
func newResponse(q *responseRequest) responseJSON {
	or := func(text json.RawMessage, otherwise string) json.RawMessage {
		if len(text) == 0 || string(text) == "null" {
			return json.RawMessage(otherwise)
		}
		return text
	}
	out := responseJSON{
		ID: server.NewID("resp_"), Object: "response", CreatedAt: time.Now().Unix(), Status: "in_progress", Model: q.Model,
		Output:       []outputItem{},
		Instructions: q.Instructions, MaxTokens: q.MaxTokens, Parallel: q.Parallel == nil ||
			*q.Parallel, ServiceTier: "default",
		TopLogProbs: q.TopLogProbs, Truncation: "disabled",
		Text: textJSON{or(q.Text.Format.text, `{"type":"text"}`)}, ToolChoice: or(q.ToolChoice.text, `"auto"`),
		Tools: or(q.Tools.text, "[]"), Metadata: or(q.Metadata, "{}"),
	}
	if e := q.Reasoning; e.On != nil {
		out.Reasoning.Effort = new(cmp.Or(e.Level, "none"))
	}
	return out
}
