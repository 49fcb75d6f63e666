package parse

import (
	"fmt"
	"strings"
)

// parseToolCall parses the body of <tool_call>: JSON, or functions with tagged parameters.
func parseToolCall(t tools, body string, complete bool) ([]ToolCall, error) {
	if firstByte([]byte(body)) == '<' {
		return parseFunctions(t, body, complete)
	}
	return parseJSON(t, body, complete)
}

// parseBareFunction parses a function without <tool_call>. body excludes "<function=" and the closing tag.
func parseBareFunction(t tools, body string, complete bool) ([]ToolCall, error) {
	body = "<function=" + body
	if complete {
		body += "</function>"
	}
	return parseFunctions(t, body, complete)
}

// parseFunctions parses one or more functions: <function=NAME>, parameters, </function>.
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
		return nil, fmt.Errorf("%w: empty body", ErrCall)
	}
	return calls, nil
}

// function splits off the first function of s.
func function(s string) (text, after string, closed bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], "</function>")
		if i < 0 {
			return s, "", false
		}
		end := from + i + len("</function>")
		// Only a tag before another function or the end closes the function: a value may contain the tag.
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
		return wrong("the call does not begin with <function=")
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
		if err := t.checkTruncated(name, args); err != nil {
			return ToolCall{}, err
		}
	}
	return t.call(name, args)
}

const (
	parameterOpen  = "<parameter="
	parameterClose = "</parameter>"
)

// parameters iterates over the parameters of a function.
type parameters struct {
	text string
	at   int // position in text
	end  int // start of the next closing tag; -1: not searched yet; len(text): none
}

// next returns the next parameter. If its closing tag is missing, the next opening tag on a new line ends the
// parameter. closed is false if neither was found.
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

// unquote trims white space and the quotes that some models put around a name.
func unquote(s string) string {
	s = strings.Trim(s, spaces)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
