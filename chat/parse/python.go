package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// interpreters are names of tools that run Python.
var interpreters = []string{"code_interpreter", "python", "ipython"}

// parsePython reads what follows Llama's python tag: a JSON object; NAME.call(key="value", ...) for the tools that the
// model was trained with; or Python, which is for a tool that runs it.
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
	return nil, fmt.Errorf("%w: neither JSON nor NAME.call(...) follows the python tag, and no tool runs Python", ErrCall)
}

// pythonList reads [NAME(key=value, ...), ...].
func pythonList(s string) ([]ToolCall, error) {
	s, ok := strings.CutPrefix(strings.Trim(s, spaces), "[")
	if !ok {
		return nil, fmt.Errorf("%w: it is no list", ErrCall)
	}
	var calls []ToolCall
	for {
		name, rest, ok := strings.Cut(s, "(")
		if name = strings.Trim(name, spaces); !ok || !isName(name) {
			return nil, fmt.Errorf("%w: %q where a call belongs", ErrCall, clip(s))
		}
		args, rest, err := pythonArgs(rest)
		if err != nil {
			return nil, err
		}
		calls = append(calls, ToolCall{Name: name, Arguments: args})
		s = strings.TrimLeft(rest, spaces)
		if s == "]" {
			return calls, nil
		}
		if s, ok = strings.CutPrefix(s, ","); !ok {
			return nil, fmt.Errorf("%w: %q where a comma belongs", ErrCall, clip(s))
		}
	}
}

// pythonArgs reads key=value, ... and the closing parenthesis, as far as templates write them: values are strings, JSON, or
// True, False and None. Rest is what follows.
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
			return nil, "", fmt.Errorf("%w: %q where an argument belongs", ErrCall, clip(s))
		}
		value, rest, err := pythonValue(strings.TrimLeft(rest, spaces))
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

func pythonValue(s string) (json.RawMessage, string, error) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		return pythonString(s)
	}
	for word, v := range map[string]string{"True": "true", "False": "false", "None": "null"} {
		if rest, ok := strings.CutPrefix(s, word); ok {
			return json.RawMessage(v), rest, nil
		}
	}
	d := json.NewDecoder(strings.NewReader(s))
	var v json.RawMessage
	if err := d.Decode(&v); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrCall, err)
	}
	v, err := compact(string(v))
	return v, s[d.InputOffset():], err
}

// pythonString reads a string literal with the escapes that matter.
func pythonString(s string) (json.RawMessage, string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return quote(b.String()), s[i+1:], nil
		case c == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '\\', '"', '\'':
				b.WriteByte(s[i])
			default:
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return nil, "", fmt.Errorf("%w: a string is not closed", ErrCall)
}
