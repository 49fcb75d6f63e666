package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// Requests and responses of Anthropic's API, https://platform.claude.com/docs/en/api/messages as of November 2026,
// version 2023-06-01. The header anthropic-beta is ignored, as are metadata, service_tier and other fields that do not
// change a response.

// messagesRequest is the body of /v1/messages and of /v1/messages/count_tokens.
type messagesRequest struct {
	Model         string          `json:"model"`
	MaxTokens     *int            `json:"max_tokens"`
	Messages      []messageParam  `json:"messages"`
	System        contentBlocks   `json:"system"`
	Tools         []toolParam     `json:"tools"`
	ToolChoice    toolChoiceParam `json:"tool_choice"`
	Thinking      thinkingParam   `json:"thinking"`
	StopSequences []string        `json:"stop_sequences"`
	Stream        bool            `json:"stream"`
	Temperature   *float64        `json:"temperature"`
	TopK          *int            `json:"top_k"`
	TopP          *float64        `json:"top_p"`
	OutputFormat  *outputFormat   `json:"output_format"` // the field's former name
	CacheControl  *cacheControl   `json:"cache_control"` // a breakpoint at the end
	MCPServers    json.RawMessage `json:"mcp_servers"`   // this and the following are refused
	Thread        json.RawMessage `json:"thread"`
	Compaction    json.RawMessage `json:"compaction"`
	newest        *int            // index of the user's newest message, in a part of a request
	params.SchemaOptions
	params.Urgency
	Output struct {
		Format *outputFormat   `json:"format"`
		Effort params.Thinking `json:"effort"`
	} `json:"output_config"`
}

// toolChoiceParam says which tools the response may or must call.
type toolChoiceParam struct {
	Type string `json:"type"` // auto (the default), any, tool or none
	Name string `json:"name"` // for type tool
	One  bool   `json:"disable_parallel_tool_use"`
}

// thinkingParam is {"type": "enabled", "budget_tokens": ...} and the like.
type thinkingParam struct {
	params.Thinking
	given        bool
	betweenTools bool
	omitted      bool // the response does not show the thinking
}

// shown reports whether the response has thinking blocks: the client asked for thinking.
func (t thinkingParam) shown() bool { return t.given && !t.omitted && (t.On == nil || *t.On) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *thinkingParam) UnmarshalJSON(b []byte) error {
	var o struct {
		Type    string `json:"type"`
		Display string `json:"display"`
	}
	_ = json.Unmarshal(b, &o) // a hint
	t.given, t.betweenTools, t.omitted = string(b) != "null", o.Type == "between_tools", o.Display == "omitted"
	return t.Thinking.UnmarshalJSON(b)
}

// outputFormat is {"type": "json_schema", "schema": ...}.
type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// anthropicFailure is the body of an error response, and the data of an error event.
type anthropicFailure struct {
	Type  string             `json:"type"`
	Error anthropicErrorJSON `json:"error"`
}

type anthropicErrorJSON struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// anthropicError returns an error in Anthropic's form.
func anthropicError(t wire.Error) any {
	e := anthropicErrorJSON{anthropicKind(t.Status), t.Message}
	if fault.CodeOf(t.Err) == fault.CodeContext && !strings.HasPrefix(e.Message, tooLong) {
		e.Message = tooLong + ": " + e.Message
	}
	return anthropicFailure{"error", e}
}

// tooLong is the text by which clients recognize that they must shorten the conversation.
const tooLong = "prompt is too long"

// anthropicKind returns the error type for a status.
func anthropicKind(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return "timeout_error"
	case http.StatusServiceUnavailable, statusOverloaded:
		return "overloaded_error"
	}
	if status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "api_error"
}

// statusOverloaded is Anthropic's status for 503.
const statusOverloaded = 529
