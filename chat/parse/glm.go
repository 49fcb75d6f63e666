package parse

import (
	"fmt"
	"slices"
	"strings"
)

// glmCycle is the order of the tags in a GLM call, which repeats.
var glmCycle = [...]string{"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}

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
// first tag, or if that is empty, the text after the last tag. Other text outside of tags is ignored.
func glmCall(body string) (name string, args []arg, err error) {
	var keys, values []string
	var outside []string
	rest := body
	for {
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
		if next != tag+1 {
			return "", nil, fmt.Errorf("%w: %s is not closed", ErrCall, glmCycle[tag])
		}
		if tag == 0 {
			keys = append(keys, strings.TrimSpace(rest[:end]))
		} else {
			values = append(values, strings.TrimSuffix(strings.TrimPrefix(rest[:end], "\n"), "\n"))
		}
		rest = rest[end+len(glmCycle[next]):]
	}
	if len(keys) != len(values) {
		return "", nil, fmt.Errorf("%w: %d keys but %d values", ErrCall, len(keys), len(values))
	}
	if name = strings.TrimSpace(outside[0]); name == "" {
		name = strings.TrimSpace(outside[len(outside)-1])
	}
	if name == "" {
		return "", nil, fmt.Errorf("%w: no name", ErrCall)
	}
	for i := range keys {
		args = append(args, arg{key: keys[i], value: values[i]})
	}
	return name, args, nil
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
			if want%2 == 1 {
				b.WriteString(rest)
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
