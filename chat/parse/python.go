package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/chat/parse/notation"
)

// pythonScan tracks strings and brackets of Python.
type pythonScan struct {
	quote byte // of the string; 0 outside of strings
	esc   bool
	depth int
}

// add reports whether b closes the last open bracket.
func (s *pythonScan) add(b byte) bool {
	switch {
	case s.esc:
		s.esc = false
	case s.quote != 0:
		if s.esc = b == '\\'; b == s.quote {
			s.quote = 0
		}
	case b == '"' || b == '\'':
		s.quote = b
	case b == '(' || b == '[' || b == '{':
		s.depth++
	case b == ')' || b == ']' || b == '}':
		s.depth--
		return s.depth == 0
	}
	return false
}

// pythonTag ends a body of Python calls at its tag, unless the tag is inside a string.
type pythonTag struct {
	skipped
	tag   string
	scan  pythonScan
	begun bool // the arguments of the first call
}

func (e *pythonTag) add(body []byte) step {
	b := body[len(body)-1]
	switch n := min(len(body), len(e.tag)); {
	case !e.begun && string(body[:n]) == e.tag[:n]: // empty
	case !e.begun && b == '(':
		e.begun = true
	case !e.begun && !isNameByte(b) && (b != '[' || len(body) > 1) || !e.begun && len(body) > calls.MaxName:
		return mention()
	}
	if e.scan.add(b); !hasSuffix(body, e.tag) {
		return step{}
	}
	if e.scan.quote != 0 {
		e.skip(body, e.tag)
		return step{}
	}
	return endAt(len(body)-len(e.tag), len(e.tag))
}

// bareEnd ends a call without a tag: an object or list of JSON, or a list of Python calls.
type bareEnd struct {
	skipped      // never
	kind    byte // the byte that decides; 0: it has not come yet
	json    jsonEnd
	python  pythonScan
}

func (e *bareEnd) add(body []byte) step {
	b := body[len(body)-1]
	if e.kind == 0 && (len(body) > 1 || b == '{') && !isSpace(b) {
		e.kind = b
	}
	if e.kind == 0 || e.kind == '{' {
		e.python.add(b)
		return e.json.add(body)
	}
	switch called := e.python.depth > 1; {
	case e.python.add(b):
		return endAt(len(body), 0)
	case !called && e.python.depth == 1 && !isNameByte(b) && e.kind != '(':
		return mention()
	case b == '(':
		e.kind = b // from now on, more than names may come
	}
	return step{}
}

// interpreters are the names of tools that run Python code.
var interpreters = []string{"code_interpreter", "python", "ipython"}

// pythonEnd ends the text after the python tag: a JSON object, NAME.call(...), or Python code up to the end of the text
// if a tool runs it.
type pythonEnd struct {
	skipped // never
	o       offer
	json    jsonEnd
	scan    pythonScan
	kind    pythonKind
}

// pythonKind is the kind of the text after the python tag.
type pythonKind int

const (
	unknownKind pythonKind = iota
	objectKind
	callKind
	codeKind
)

func (e *pythonEnd) add(body []byte) step {
	b := body[len(body)-1]
	if e.kind == unknownKind {
		switch _, runs := e.o.interpreter(); {
		case b == '{' && len(body) == 1:
			e.kind = objectKind
		case b == '(' && hasSuffix(body, ".call(") && len(body) > len(".call("):
			e.kind = callKind
		case isNameByte(b) && len(body) <= calls.MaxName:
		case !runs:
			return mention()
		default:
			e.kind = codeKind
		}
	}
	switch e.kind {
	case objectKind:
		return e.json.add(body)
	case callKind:
		if e.scan.add(b) {
			return endAt(len(body), 0)
		}
	case codeKind:
		for _, t := range []string{"<|eom_id|>", "<|eot_id|>"} {
			if hasSuffix(body, t) {
				return endAt(len(body)-len(t), len(t))
			}
		}
	}
	return step{}
}

// interpreter returns the name of an offered tool that runs Python code.
func (o offer) interpreter() (name string, ok bool) {
	for _, name := range interpreters {
		if _, ok := o.tools[name]; ok {
			return name, true
		}
	}
	return "", false
}

// parsePython parses the text after Llama's python tag: a JSON object, NAME.call(key="value", ...) for built-in tools,
// or Python code for an interpreter tool.
func parsePython(t tools, body string, complete bool) ([]ToolCall, error) {
	if firstByte([]byte(body)) == '{' {
		return parseJSON(t, body, complete)
	}
	code := strings.Trim(body, spaces)
	if name, rest, ok := strings.Cut(code, ".call("); ok && calls.IsName(name) {
		if args, rest, err := pythonArgs(rest); err == nil && strings.Trim(rest, spaces) == "" {
			return []ToolCall{{Name: name, Arguments: args}}, nil
		}
	}
	if name, ok := (offer{tools: t}).interpreter(); ok && code != "" {
		return []ToolCall{{Name: name, Arguments: json.RawMessage(`{"code":` + string(notation.Quote(code)) + `}`)}}, nil
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
	if name = strings.Trim(name, spaces); !ok || !calls.IsName(name) {
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
		if key = strings.Trim(key, spaces); !ok || !calls.IsName(key) {
			return nil, "", fmt.Errorf("%w: expected an argument, got %q", ErrCall, excerpt(s))
		}
		value, rest, err := notation.Python(strings.TrimLeft(rest, spaces))
		if err != nil {
			return nil, "", fmt.Errorf("%w: %w", ErrCall, err)
		}
		if !first {
			b.WriteByte(',')
		}
		b.Write(notation.Quote(key))
		b.WriteByte(':')
		b.Write(value)
		s = strings.TrimPrefix(strings.TrimLeft(rest, spaces), ",")
	}
}
