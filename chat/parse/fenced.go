package parse

import (
	"strings"
)

// fence begins and ends a code fence.
const fence = "```"

// fencedEnd ends calls without a tag: an object or list of JSON, or a code fence with some.
type fencedEnd struct {
	skipped // never
	inside  bool
	json    jsonEnd
	fence   jsonTag
}

func (e *fencedEnd) add(body []byte) step {
	if body[0] != fence[0] {
		return e.json.add(body)
	}
	if !e.inside {
		head := string(body) // short: what is no fence ends here
		begins := func(s string) bool { return strings.HasPrefix(s, head) }
		switch {
		case begins(fence + "json"):
			return step{}
		case len(head) <= len(fence) || unfenced(head[:len(head)-1]) != "":
			return mention()
		}
		e.inside = true
	}
	st := e.fence.add(body)
	if st.verdict == broken {
		return mention()
	}
	return st
}

// unfenced returns the text of a body without the beginning of a code fence.
func unfenced(body string) string {
	body = strings.TrimPrefix(body, fence)
	return strings.TrimLeft(strings.TrimPrefix(body, "json"), spaces)
}

// parseFenced parses a body of JSON, perhaps in a code fence. It is content unless all calls name offered tools.
func parseFenced(t tools, body string, complete bool) ([]ToolCall, error) {
	text := unfenced(body)
	if calls, err := parseBare(t, text, true); err == nil || complete {
		return calls, err
	}
	return parseBare(t, text, false)
}
