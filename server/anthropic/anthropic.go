package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/limits/fault"
	"github.com/ingotml/ingot/limits/jsonfit"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// Requests and responses of Anthropic's API, https://platform.claude.com/docs/en/api/messages as of November 2026,
// version 2023-06-01. The headers anthropic-version and anthropic-beta are ignored, as are metadata, service_tier and
// other fields that do not change a response.

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
	params.SchemaOptions
	params.Urgency
	Output struct {
		Format *outputFormat   `json:"format"`
		Effort params.Thinking `json:"effort"`
	} `json:"output_config"`
}

type messageParam struct {
	Role    string        `json:"role"`
	Content contentBlocks `json:"content"`
}

// contentBlocks is a list of blocks, or a string, which stands for one text block.
type contentBlocks []contentBlock

// contentBlock has the fields of all block types.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Source    *blockSource    `json:"source"` // of images and documents
	ID        string          `json:"id"`     // of tool_use
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"` // of tool_result
	// contentBlocks; decoded only when used, so that nesting is not followed
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`

	CacheControl *cacheControl `json:"cache_control"` // a breakpoint after the block
}

type blockSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// UnmarshalJSON ignores sources that are not objects, such as those of search results: their blocks are rejected by
// type.
func (s *blockSource) UnmarshalJSON(b []byte) error {
	type fields blockSource
	if len(b) > 0 && b[0] == '{' {
		return jsonfit.Unmarshal(b, (*fields)(s))
	}
	return nil
}

// Block types.
const (
	textBlock       = "text"
	imageBlock      = "image"
	documentBlock   = "document"
	toolUseBlock    = "tool_use"
	toolResultBlock = "tool_result"
	thinkingBlock   = "thinking"
	redactedBlock   = "redacted_thinking"
)

func (c *contentBlocks) UnmarshalJSON(b []byte) error {
	var text *string
	if jsonfit.Unmarshal(b, &text) == nil {
		if *c = nil; text != nil {
			*c = contentBlocks{{Type: textBlock, Text: *text}}
		}
		return nil
	}
	if b[0] != '[' {
		return jsonfit.Wrong(b, "a string or an array of blocks")
	}
	return jsonfit.Unmarshal(b, (*[]contentBlock)(c))
}

// toolParam is a tool that the client runs. Tools that Anthropic runs have a type.
type toolParam struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`

	CacheControl *cacheControl `json:"cache_control"` // a breakpoint after the tool
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
