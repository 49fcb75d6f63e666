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
		name, rest, ok := strings.Cut(s, "(")
		if name = strings.Trim(name, spaces); !ok || !isName(name) {
			return nil, fmt.Errorf("%w: expected a call, got %q", ErrCall, excerpt(s))
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
			return nil, fmt.Errorf("%w: expected a comma, got %q", ErrCall, excerpt(s))
		}
	}
}

// pythonArgs parses key=value, ... and the closing parenthesis. It supports the values that templates write: strings,
// JSON, True, False and None. rest is the text after the parenthesis.
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

// pythonString parses a string literal. It supports the escapes \n, \t, \\, \" and \'.
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
	return nil, "", fmt.Errorf("%w: unterminated string", ErrCall)
}
