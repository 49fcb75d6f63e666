package parse

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/parse/calls"
)

// glmCycle is the order of the tags in a GLM call, which repeats.
var glmCycle = [...]string{"<arg_key>", "</arg_key>", glmValue, glmValueEnd}

const (
	glmValue    = "<arg_value>"
	glmValueEnd = "</arg_value>"
)

const (
	glmOpen  = "<tool_call>"
	glmClose = "</tool_call>"
)

// glmEnd ends a call at its closing tag, unless that is part of a value.
type glmEnd struct {
	skipped
	at     int  // where a tag may have begun, plus 1; 0: nowhere
	begun  bool // a tag of a key or value has come
	inside bool // a value
	closed int  // where the tag that closed the value ends; 0: other text follows it, or there is none
	calls  int  // quoted in the value, not closed
	values int  // of the quoted call
}

func (e *glmEnd) add(body []byte) step {
	b := body[len(body)-1]
	if e.closed > 0 {
		e.reopen(body)
	}
	switch {
	case !e.begun:
		return e.head(body, b)
	case b != '>':
	case hasSuffix(body, glmClose):
		n := len(body) - len(glmClose)
		if !e.inside {
			return endAt(n, len(glmClose))
		}
		if e.skip(body, glmClose); e.calls > 0 {
			e.calls--
			e.values = 0
		}
	case hasSuffix(body, glmOpen) && e.inside:
		if e.size > 0 && blank(body[e.n+e.size:len(body)-len(glmOpen)]) {
			return endAt(e.n, e.size) // another call follows: the value was not closed
		}
		e.calls++
	case hasSuffix(body, glmValue) && e.calls > 0:
		e.values++
	case hasSuffix(body, glmValueEnd) && e.values > 0:
		e.values--
	case hasSuffix(body, glmValue):
		e.inside = true
	case hasSuffix(body, glmValueEnd):
		e.inside, e.calls, e.closed = false, 0, len(body)
	}
	return step{}
}

// reopen takes the tag that closed a value for a part of the value if no tag follows it.
func (e *glmEnd) reopen(body []byte) {
	text := string(bytes.TrimLeft(body[e.closed:], spaces))
	if text == "" {
		e.closed = len(body)
		return
	}
	for _, t := range []string{glmCycle[0], glmValue, glmClose} {
		if strings.HasPrefix(t, text) {
			if t == text {
				e.closed = 0
			}
			return
		}
	}
	e.inside, e.closed = true, 0
}

// head processes a byte before the first tag: of the name, and of a key or value whose tag is missing.
func (e *glmEnd) head(body []byte, b byte) step {
	switch {
	case e.at > 0:
		text := string(body[e.at-1:])
		if glmClose == text {
			return endAt(e.at-1, len(glmClose))
		}
		for _, t := range append(glmCycle[:], glmClose) {
			if e.begun = t == text; e.begun {
				e.inside = t == glmValue
				return step{}
			}
			if strings.HasPrefix(t, text) {
				return step{}
			}
		}
		return mention()
	case b == '<':
		e.at = len(body)
	case len(body) > calls.MaxName:
		return mention()
	}
	return step{}
}

// parseGLM parses NAME and tagged keys and values. It repairs missing tags, except at the end of the text, where it is
// unknown what is missing.
func parseGLM(t tools, body string, complete bool) ([]ToolCall, error) {
	name, args, err := glmCall(body)
	if err != nil && complete {
		if n, a, again := glmCall(glmRepair(body)); again == nil {
			name, args, err = n, a, nil
		}
	}
	if err == nil && !complete {
		err = t.checkTruncated(name, args)
	} else if err != nil && !complete {
		err = fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := t[name]; !ok && len(args) == 0 {
		return nil, errNoCall // a word between two tags that are only mentioned
	}
	c, err := t.call(name, args)
	return []ToolCall{c}, err
}

// glmTag finds the next tag and its index in glmCycle; -1 if there is none.
func glmTag(s string) (at, tag int) {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '<')
		if i < 0 {
			return -1, -1
		}
		from += i
		if tag := slices.IndexFunc(glmCycle[:], func(t string) bool { return strings.HasPrefix(s[from:], t) }); tag >= 0 {
			return from, tag
		}
		from++
	}
}

// glmCall parses a body with correct tags. The n-th key belongs to the n-th value. The name is the text before the
// first tag, or if that is empty, the text after the last tag.
func glmCall(body string) (name string, args []arg, err error) {
	var keys, values []string
	var outside []string
	clear := true // the closing tags of values so far left no doubt
	for rest := body; ; {
		at, tag := glmTag(rest)
		if at < 0 {
			outside = append(outside, rest)
			break
		}
		outside = append(outside, rest[:at])
		rest = rest[at+len(glmCycle[tag]):]
		if tag%2 == 1 {
			return "", nil, fmt.Errorf("%w: %s without %s", ErrCall, glmCycle[tag], glmCycle[tag-1])
		}
		end, next := glmTag(rest)
		if tag == 2 {
			next = tag + 1
			if end, clear = glmValueLen(rest, clear); end < 0 {
				next = -1
			}
		}
		if next != tag+1 {
			return "", nil, fmt.Errorf("%w: %s is not closed", ErrCall, glmCycle[tag])
		}
		if tag == 0 {
			keys = append(keys, strings.TrimSpace(rest[:end]))
		} else {
			values = append(values, oneLine(rest[:end]))
		}
		rest = rest[end+len(glmCycle[next]):]
	}
	if len(keys) != len(values) {
		return "", nil, fmt.Errorf("%w: %d keys but %d values", ErrCall, len(keys), len(values))
	}
	texts := slices.DeleteFunc(outside, func(s string) bool { return strings.Trim(s, spaces) == "" })
	switch {
	case len(texts) == 0:
		return "", nil, fmt.Errorf("%w: no name", ErrCall)
	case len(texts) > 1:
		return "", nil, fmt.Errorf("%w: unexpected %q", ErrCall, excerpt(texts[1]))
	}
	for i := range keys {
		args = append(args, arg{key: keys[i], value: values[i]})
	}
	return strings.TrimSpace(texts[0]), args, nil
}

// glmValueLen returns the length of the value at the start of s; -1 if its closing tag is missing. A closing tag counts
// if another key or value follows, or the end, and it does not belong to a call that the value quotes. If none does, or
// if that was so before, the first one counts, and clear is false.
func glmValueLen(s string, wasClear bool) (n int, clear bool) {
	first, calls, values := -1, 0, 0
	for at := 0; ; {
		i := strings.Index(s[at:], glmValueEnd)
		if i < 0 || !wasClear && at > 0 {
			return first, false
		}
		text := s[at : at+i]
		if key := strings.Index(text, glmCycle[1]); calls == 0 && key >= 0 && !strings.Contains(text, glmOpen) &&
			strings.HasPrefix(strings.TrimLeft(text[key+len(glmCycle[1]):], spaces), glmValue) {
			return -1, wasClear // the next key has begun
		}
		if calls += strings.Count(text, glmOpen) - strings.Count(text, glmClose); calls > 0 {
			values += strings.Count(text, glmValue)
		} else {
			calls, values = 0, 0
		}
		end := at + i
		if at = end + len(glmValueEnd); first < 0 {
			first = end
		}
		if calls > 0 && values > 0 {
			values--
			continue
		}
		after := strings.TrimLeft(s[at:], spaces)
		if after == "" || strings.HasPrefix(after, glmCycle[0]) || strings.HasPrefix(after, glmValue) {
			return end, true
		}
	}
}

// glmRepair inserts missing tags so that they follow glmCycle. Text at a position where a tag should open becomes the
// content of that tag.
func glmRepair(s string) string {
	at, tag := glmTag(s)
	if at < 0 {
		return s
	}
	var b strings.Builder
	name, text := s[:at], ""
	if tag != 0 {
		if i := strings.IndexAny(name, spaces); i >= 0 {
			name, text = name[:i], strings.TrimLeft(name[i:], spaces)
		}
	}
	b.WriteString(name)
	rest := text + s[at:]
	want := 0
	insert := func() int {
		b.WriteString(glmCycle[want])
		last := want
		want = (want + 1) % len(glmCycle)
		return last
	}
	for {
		at, tag := glmTag(rest)
		if at < 0 {
			text := strings.Trim(rest, spaces) != ""
			if want == 2 && text {
				insert()
			}
			if want%2 == 1 || text {
				b.WriteString(rest)
			}
			if want%2 == 1 {
				insert()
			}
			break
		}
		text := rest[:at]
		if tag != want && want%2 == 0 && text != "" {
			insert()
			continue
		}
		if tag != want {
			inserted := want
			for last := want; last != tag; last = (last + 1) % len(glmCycle) {
				inserted = last
			}
			if inserted%2 == 1 { // the text belongs before the last inserted closing tag
				for want != inserted {
					insert()
				}
				b.WriteString(text)
				text = ""
			}
			for want != tag {
				insert()
			}
		}
		b.WriteString(text)
		insert()
		rest = rest[at+len(glmCycle[tag]):]
	}
	for want != 0 {
		insert()
	}
	return b.String()
}
