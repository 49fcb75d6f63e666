package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// interpreters are the names of tools that run Python code.
var interpreters = []string{"code_interpreter", "python", "ipython"}

// parsePython parses the text after Llama's python tag: a JSON object, NAME.call(key="value", ...) for built-in tools,
// or Python code for an interpreter tool.
func parsePython(t tools, body string, complete bool) ([]ToolCall, error) {
	if firstByte([]byte(body)) == '{' {
		return parseJSON(t, body, complete)
	}
	code := strings.Trim(body, spaces)
	if name, rest, ok := strings.Cut(code, ".call("); ok && isName(name) {
		if args, rest, err := pythonArgs(rest); err == nil && strings.Trim(rest, spaces) == "" {
			return []ToolCall{{Name: name, Arguments: args}}, nil
		}
	}
	for _, name := range interpreters {
		if _, ok := t[name]; ok && code != "" {
			return []ToolCall{{Name: name, Arguments: json.RawMessage(`{"code":` + string(quote(code)) + `}`)}}, nil
		}
	}
	return nil, fmt.Errorf("%w: the text after the python tag is neither JSON nor NAME.call(...), and no tool runs Python",
		ErrCall)
}

// pythonList parses [NAME(key=value, ...), ...].
func pythonList(s string) ([]ToolCall, error) {
	s, ok := strings.CutPrefix(strings.Trim(s, spaces), "[")
	if !ok {
		return nil, fmt.Errorf("%w: not a list", ErrCall)
	}
	var calls []ToolCall
	for {
		call, rest, err := pythonCall(s)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
		s = strings.TrimLeft(rest, spaces)
		if s == "]" {
			return calls, nil
		}
		if s, ok = strings.CutPrefix(s, ","); !ok {
			return nil, fmt.Errorf("%w: expected a comma, got %q", ErrCall, excerpt(s))
		}
	}
}

// parsePythonCalls parses NAME(key=value, ...), one or more, each on a line of its own. Commas between them, and
// brackets around all of them, are accepted.
func parsePythonCalls(_ tools, body string, complete bool) ([]ToolCall, error) {
	wrong := func(err error) ([]ToolCall, error) {
		if !complete {
			return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
		}
		return nil, err
	}
	s := strings.Trim(body, spaces)
	if strings.HasPrefix(s, "[") {
		calls, err := pythonList(s)
		if err != nil {
			return wrong(err)
		}
		return calls, nil
	}
	var calls []ToolCall
	for s != "" {
		call, rest, err := pythonCall(s)
		if err != nil {
			return wrong(err)
		}
		calls = append(calls, call)
		s = strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(rest, spaces), ","), spaces)
	}
	if len(calls) == 0 {
		return wrong(fmt.Errorf("%w: empty body", ErrCall))
	}
	return calls, nil
}

// pythonCall parses NAME(key=value, ...). rest is the text after it.
func pythonCall(s string) (call ToolCall, rest string, err error) {
	name, rest, ok := strings.Cut(s, "(")
	if name = strings.Trim(name, spaces); !ok || !isName(name) {
		return call, "", fmt.Errorf("%w: expected a call, got %q", ErrCall, excerpt(s))
	}
	args, rest, err := pythonArgs(rest)
	return ToolCall{Name: name, Arguments: args}, rest, err
}

// pythonArgs parses key=value, ... and the closing parenthesis. Values are literals of Python or JSON. rest is the text
// after the parenthesis.
func pythonArgs(s string) (args json.RawMessage, rest string, err error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for first := true; ; first = false {
		s = strings.TrimLeft(s, spaces)
		if rest, ok := strings.CutPrefix(s, ")"); ok {
			b.WriteByte('}')
			return b.Bytes(), rest, nil
		}
		key, rest, ok := strings.Cut(s, "=")
		if key = strings.Trim(key, spaces); !ok || !isName(key) {
			return nil, "", fmt.Errorf("%w: expected an argument, got %q", ErrCall, excerpt(s))
		}
		value, rest, err := pythonValue(strings.TrimLeft(rest, spaces), 0)
		if err != nil {
			return nil, "", err
		}
		if !first {
			b.WriteByte(',')
		}
		b.Write(quote(key))
		b.WriteByte(':')
		b.Write(value)
		s = strings.TrimPrefix(strings.TrimLeft(rest, spaces), ",")
	}
}
