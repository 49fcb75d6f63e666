package chat

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
)

// limitError returns the error of a Go template whose text exceeds a limit.
func limitError(format string, args ...any) error {
	return fmt.Errorf("%w: %w: %s", ErrTemplate, jinja.ErrLimit, fmt.Sprintf(format, args...))
}

// scan finds the actions of a Go template in the same way as text/template's lexer, and bounds everything that its
// parser recurses over or keeps. It runs before the parser, which has no limits: a stack overflow ends the process.
// Some text that the lexer rejects passes.
func scan(text string) error {
	var s scanner
	for {
		at := strings.Index(text, "{{")
		if at < 0 {
			return nil
		}
		text = text[at+2:]
		inside := text
		if len(text) > 1 && text[0] == '-' && isBlank(text[1]) {
			inside = text[2:]
		}
		if strings.HasPrefix(inside, "/*") {
			end := strings.Index(text, "*/")
			if end < 0 {
				return nil
			}
			text = text[end+2:]
			continue
		}
		n, err := s.action(text)
		if err != nil {
			return err
		}
		text = text[n:]
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// scanner counts what the actions of a template open and define.
type scanner struct {
	open        []int // levels of each open block; an else if adds one
	depth       int   // sum of open
	definitions int
	variables   int
}

// action counts the action at the start of text, which begins after the left delimiter, and returns its length.
func (s *scanner) action(text string) (int, error) {
	var words [2]string
	parens := 0
	i, n := 0, 0
	for i < len(text) && !strings.HasPrefix(text[i:], "}}") {
		c := text[i]
		if c >= 'a' && c <= 'z' && n < len(words) {
			end := i
			for end < len(text) && text[end] >= 'a' && text[end] <= 'z' {
				end++
			}
			words[n] = text[i:end]
			n++
			i = end
			continue
		}
		if !isBlank(c) && c != '-' {
			n = len(words)
		}
		switch {
		case c == '"' || c == '\'':
			i = quoted(text, i)
			continue
		case c == '`':
			end := strings.IndexByte(text[i+1:], '`')
			if end < 0 {
				return len(text), nil
			}
			i += end + 2
			continue
		case c == '(':
			if parens++; s.depth+parens > limits.TemplateNesting {
				return 0, limitError("parentheses nested more than %d deep", limits.TemplateNesting)
			}
		case c == ')':
			parens--
		case c == ':' && strings.HasPrefix(text[i:], ":="):
			if s.variables++; s.variables > limits.TemplateVariables {
				return 0, limitError("more than %d variables", limits.TemplateVariables)
			}
		}
		i++
	}
	return i, s.count(words)
}

// quoted returns the index after the quoted string at i, or len(text) if it is unterminated.
func quoted(text string, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\\':
			j++
		case text[i]:
			return j + 1
		}
	}
	return len(text)
}

// count updates the counters for an action that begins with these words.
func (s *scanner) count(words [2]string) error {
	switch words[0] {
	case "define", "block":
		if s.definitions++; s.definitions > limits.TemplateDefinitions {
			return limitError("more than %d definitions", limits.TemplateDefinitions)
		}
		s.open = append(s.open, 1)
		s.depth++
	case "if", "range", "with":
		s.open = append(s.open, 1)
		s.depth++
	case "else":
		if words[1] != "" && len(s.open) > 0 {
			s.open[len(s.open)-1]++
			s.depth++
		}
	case "end":
		if last := len(s.open) - 1; last >= 0 {
			s.depth -= s.open[last]
			s.open = s.open[:last]
		}
	}
	if s.depth > limits.TemplateNesting {
		return limitError("blocks nested more than %d deep", limits.TemplateNesting)
	}
	return nil
}
