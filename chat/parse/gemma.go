package parse

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/chat/parse/notation"
)

// parseGemma parses call:NAME{key:value,...}. Strings are enclosed in <|"|>; keys have no quotes. If the closing tag
// comes too early, the end of the body closes open brackets and strings.
func parseGemma(t tools, body string, complete bool) ([]ToolCall, error) {
	if !complete {
		return nil, fmt.Errorf("%w: the text ends inside the call", ErrIncomplete)
	}
	s, ok := strings.CutPrefix(strings.Trim(body, spaces), "call:")
	at := strings.IndexByte(s, '{')
	if !ok || at < 0 {
		return nil, fmt.Errorf("%w: not of the form call:NAME{...}", ErrCall)
	}
	name := strings.Trim(s[:at], spaces)
	if name == "" {
		return nil, fmt.Errorf("%w: no name", ErrCall)
	}
	args, err := notation.Gemma(s[at:], t[name].types)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCall, err)
	}
	return []ToolCall{{Name: name, Arguments: args}}, nil
}

// gemmaEnd ends call:NAME{...} after its last brace, or at the closing tag if braces are missing.
type gemmaEnd struct {
	skipped
	scan   notation.Scan
	quoted bool
}

const (
	gemmaCall  = "call:"
	gemmaClose = "<tool_call|>"
)

func (e *gemmaEnd) add(body []byte) step {
	b := body[len(body)-1]
	switch {
	case b == '>' && hasSuffix(body, gemmaClose):
		if e.quoted || e.scan.InString() {
			e.skip(body, gemmaClose)
			return step{}
		}
		return endAt(len(body)-len(gemmaClose), len(gemmaClose))
	case b == '>' && hasSuffix(body, notation.GemmaQuote):
		if !e.scan.InString() {
			e.quoted = !e.quoted
		}
	case e.quoted || b == '"' && hasSuffix(body, `<|"`):
	case !e.scan.Begun() && b != '{':
		return gemmaHead(body)
	default:
		if e.scan.Add(b) {
			return endAt(len(body), 0)
		}
	}
	return step{}
}

// gemmaHead checks the text before the first brace.
func gemmaHead(body []byte) step {
	n := min(len(body), len(gemmaCall))
	if string(body[:n]) != gemmaCall[:n] || len(body) > calls.MaxName || body[len(body)-1] == '\n' {
		return mention()
	}
	return step{}
}
