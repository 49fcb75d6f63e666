package parse

import (
	"fmt"
	"strings"
)

// parseToolCall reads the body of a <tool_call>: JSON, or a function with its parameters in tags.
func parseToolCall(t tools, body string, complete bool) ([]ToolCall, error) {
	if firstByte([]byte(body)) == '<' {
		return parseFunctions(t, body, complete)
	}
	return parseJSON(t, body, complete)
}

// parseBareFunction reads a function whose opening tag is read up to its name and whose closing tag is read.
func parseBareFunction(t tools, body string, complete bool) ([]ToolCall, error) {
	body = "<function=" + body
	if complete {
		body += "</function>"
	}
	return parseFunctions(t, body, complete)
}

// parseFunctions reads <function=NAME>, parameters, </function>, once or more.
func parseFunctions(t tools, body string, complete bool) ([]ToolCall, error) {
	var calls []ToolCall
	for rest := strings.Trim(body, spaces); rest != ""; {
		text, after, closed := function(rest)
		c, err := oneFunction(t, text, complete || closed)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
		rest = strings.TrimLeft(after, spaces)
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrCall)
	}
	return calls, nil
}

// function cuts a text after its first function.
func function(s string) (text, after string, closed bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], "</function>")
		if i < 0 {
			return s, "", false
		}
		end := from + i + len("</function>")
		// One that another function or nothing follows is the end: a value may speak of functions too.
		if rest := strings.TrimLeft(s[end:], spaces); rest == "" || strings.HasPrefix(rest, "<function=") {
			return s[:end-len("</function>")], s[end:], true
		}
		from = end
	}
}

func oneFunction(t tools, s string, complete bool) (ToolCall, error) {
	wrong := func(why string) (ToolCall, error) {
		if !complete {
			return ToolCall{}, fmt.Errorf("%w: %s", ErrIncomplete, why)
		}
		return ToolCall{}, fmt.Errorf("%w: %s", ErrCall, why)
	}
	s, ok := strings.CutPrefix(s, "<function=")
	if !ok {
		return wrong("it does not begin with <function=")
	}
	name, rest, ok := strings.Cut(s, ">")
	if name = unquote(name); !ok || name == "" {
		return wrong("the function has no name")
	}
	var args []arg
	for p := (parameters{text: rest, end: -1}); ; {
		key, value, closed, ok := p.next()
		if !ok {
			break
		}
		if key = unquote(key); key == "" {
			return wrong("a parameter has no name")
		}
		if !closed && !complete {
			return wrong("a parameter is not closed")
		}
		args = append(args, arg{key: key, value: strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")})
	}
	if !complete {
		if err := t.whole(name, args); err != nil {
			return ToolCall{}, err
		}
	}
	return t.call(name, args)
}

const (
	parameterOpen  = "<parameter="
	parameterClose = "</parameter>"
)

// parameters reads the parameters of a function one after another.
type parameters struct {
	text string
	at   int // what is read
	end  int // of the next closing tag, where it begins; -1 = not looked for, len(text) = there is none
}

// next cuts the next parameter out. Where its closing tag is forgotten, the next one on a line of its own ends it.
func (p *parameters) next() (key, value string, closed, ok bool) {
	i := strings.Index(p.text[p.at:], parameterOpen)
	if i < 0 {
		return "", "", false, false
	}
	p.at += i + len(parameterOpen)
	if i = strings.IndexByte(p.text[p.at:], '>'); i < 0 {
		return "", "", false, true
	}
	key = p.text[p.at : p.at+i]
	p.at += i + 1
	if p.end < p.at {
		if p.end = strings.Index(p.text[p.at:], parameterClose); p.end < 0 {
			p.end = len(p.text)
		} else {
			p.end += p.at
		}
	}
	value = p.text[p.at:p.end]
	if i := strings.Index(value, "\n"+parameterOpen); i >= 0 {
		p.at += i
		return key, value[:i], true, true
	}
	closed = p.end < len(p.text)
	p.at = min(p.end+len(parameterClose), len(p.text))
	return key, value, closed, true
}

// unquote trims a name, and takes quotes away that a model puts around it.
func unquote(s string) string {
	s = strings.Trim(s, spaces)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
