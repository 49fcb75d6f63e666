package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/runtime"
)

// What the endpoints of Anthropic's API take and give, https://platform.claude.com/docs/en/api/messages as of November 2026, version 2023-06-01. The
// headers anthropic-version and anthropic-beta are left alone, as are metadata, cache_control, service_tier and whatever else does not
// change an answer.

// messagesRequest is the body of /v1/messages and of /v1/messages/count_tokens.
type messagesRequest struct {
	Model         string          `json:"model"`
	MaxTokens     *int            `json:"max_tokens"`
	Messages      []messageParam  `json:"messages"`
	System        contentBlocks   `json:"system"`
	Tools         []toolParam     `json:"tools"`
	ToolChoice    toolChoiceParam `json:"tool_choice"`
	Thinking      *thinkingParam  `json:"thinking"`
	StopSequences []string        `json:"stop_sequences"`
	Stream        bool            `json:"stream"`
	Temperature   *float64        `json:"temperature"`
	TopK          *int            `json:"top_k"`
	TopP          *float64        `json:"top_p"`
	OutputFormat  *outputFormat   `json:"output_format"` // the place that it had first
	Output        struct {
		Format *outputFormat `json:"format"`
		Effort string        `json:"effort"`
	} `json:"output_config"`
}

type messageParam struct {
	Role    string        `json:"role"`
	Content contentBlocks `json:"content"`
}

// contentBlocks are blocks, or a text, which is a block of it.
type contentBlocks []contentBlock

// contentBlock has what the types of blocks have together.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Source    *blockSource    `json:"source"` // of images and documents
	ID        string          `json:"id"`     // of tool_use
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"` // of tool_result
	Content   json.RawMessage `json:"content"`     // contentBlocks; read when wanted, so that depth costs nothing
	IsError   bool            `json:"is_error"`
}

type blockSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// UnmarshalJSON leaves other kinds of sources alone, such as the text that search results have: their blocks are refused by name.
func (s *blockSource) UnmarshalJSON(b []byte) error {
	type fields blockSource
	if len(b) > 0 && b[0] == '{' {
		return json.Unmarshal(b, (*fields)(s))
	}
	return nil
}

// Types of blocks.
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
	if json.Unmarshal(b, &text) == nil {
		if *c = nil; text != nil {
			*c = contentBlocks{{Type: textBlock, Text: *text}}
		}
		return nil
	}
	return json.Unmarshal(b, (*[]contentBlock)(c))
}

// toolParam is a tool that the client runs. Those that Anthropic runs have a type.
type toolParam struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
}

// toolChoiceParam is which tools the answer may call, or has to.
type toolChoiceParam struct {
	Type string `json:"type"` // auto, any, tool or none; none given is auto
	Name string `json:"name"` // of tool
	One  bool   `json:"disable_parallel_tool_use"`
}

type thinkingParam struct {
	Type    string `json:"type"` // enabled, adaptive, between_tools or disabled
	Budget  *int   `json:"budget_tokens"`
	Display string `json:"display"` // summarized or omitted
}

// outputFormat is {"type": "json_schema", "schema": ...}.
type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// anthropicFailure is the body of an error, and the data of a stream's last event.
type anthropicFailure struct {
	Type  string             `json:"type"`
	Error anthropicErrorJSON `json:"error"`
}

type anthropicErrorJSON struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// anthropicError writes an error as Anthropic's clients expect it.
func anthropicError(t told) any {
	e := anthropicErrorJSON{anthropicKind(t.status), t.message}
	if (errors.Is(t.err, errLong) || errors.Is(t.err, runtime.ErrMemory)) && !strings.HasPrefix(e.Message, tooLong) {
		e.Message = tooLong + ": " + e.Message
	}
	return anthropicFailure{"error", e}
}

// tooLong are the words by which clients notice that they have to shorten a conversation.
const tooLong = "prompt is too long"

// anthropicKind is the word for a status.
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

// statusOverloaded is what Anthropic's API has in place of 503.
const statusOverloaded = 529
