package openai

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/ingotml/ingot/server"
)

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
	Tools        []json.RawMessage   `json:"tools"`
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
	Format    json.RawMessage `json:"format"`
	Verbosity string          `json:"verbosity"`
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

// Statuses of responses and items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusCancelled  = "cancelled"
	statusFailed     = "failed"
)

// newResponse returns a response without output, and without the defaults of the model.
func newResponse(q *responseRequest) responseJSON {
	or := func(text json.RawMessage, otherwise string) json.RawMessage {
		if len(text) == 0 || string(text) == "null" {
			return json.RawMessage(otherwise)
		}
		return text
	}
	out := responseJSON{
		ID: server.NewID("resp_"), Object: "response", CreatedAt: time.Now().Unix(), Status: statusInProgress,
		Model: q.Model, Output: []outputItem{}, Instructions: q.Instructions, MaxTokens: q.MaxTokens,
		Parallel: q.Parallel == nil || *q.Parallel, Previous: orNull(q.Previous), Background: q.Background,
		Store: q.stores(), ServiceTier: "default", TopLogProbs: q.TopLogProbs, Truncation: "disabled",
		Text: textJSON{or(q.Text.Format.text, `{"type":"text"}`), "medium"}, ToolChoice: or(q.ToolChoice.Raw, `"auto"`),
		Tools: []json.RawMessage{}, Metadata: or(q.Metadata, "{}"),
	}
	if q.Truncation == truncationAuto {
		out.Truncation = truncationAuto
	}
	if e := q.Reasoning; e.On != nil {
		out.Reasoning.Effort = new(cmp.Or(e.Level, "none"))
	}
	return out
}
