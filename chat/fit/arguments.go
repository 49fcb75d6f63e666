package fit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
)

// formed returns a message whose calls, content and ids have the form that a template accepts.
func (c Calls) formed(m chat.Message) chat.Message {
	if c.ShortIDs {
		m.ToolCallID = shortID(m.ToolCallID)
	}
	if len(m.ToolCalls) == 0 {
		return m
	}
	if m.Content == "" && len(m.Parts) == 0 {
		m.Parts, m.Null = nil, c.Null
	}
	calls := make([]chat.ToolCall, len(m.ToolCalls))
	for i, call := range m.ToolCalls {
		object := arguments(call)
		call.Arguments = object
		if c.Text {
			call.Arguments = argumentText(call, object)
		}
		if c.ShortIDs {
			call.ID = shortID(call.ID)
		}
		calls[i] = call
	}
	m.ToolCalls = calls
	return m
}

// arguments returns the arguments of a call as an object. Those that are cut off are closed. Others that are no object
// become a member of one.
func arguments(call chat.ToolCall) *jinja.Dict {
	var rest jinja.Value
	switch v := call.Arguments.(type) {
	case *jinja.Dict:
		if v != nil {
			return v
		}
	case nil:
	case string:
		text := strings.TrimSpace(v)
		if text == "" {
			break
		}
		for _, t := range []string{text, closed(text)} {
			switch d, err := jinja.DecodeJSON([]byte(t)); d := d.(type) {
			case *jinja.Dict:
				if err == nil {
					return d
				}
			case nil:
				if err == nil { // null
					return jinja.NewDict()
				}
			}
		}
		rest = v
	default:
		rest = v
	}
	d := jinja.NewDict()
	if rest != nil {
		d.Put("arguments", rest)
	}
	return d
}

// argumentText returns the arguments of a call as JSON text: that of the client, if it is an object.
func argumentText(call chat.ToolCall, object *jinja.Dict) string {
	if call.Text != "" && json.Valid([]byte(call.Text)) && strings.HasPrefix(strings.TrimSpace(call.Text), "{") {
		return call.Text
	}
	text, err := jinja.EncodeJSON(object)
	if err != nil {
		return "{}" // values that a request decoded can be encoded
	}
	return text
}

// closed completes a JSON text that was cut off: it closes the string, lists and objects that are open, and drops an
// escape, a comma or a key without a value at the end.
func closed(text string) string {
	var open []byte // closing brackets of what is open
	inside, escape := false, false
	for i := range len(text) {
		switch b := text[i]; {
		case escape:
			escape = false
		case inside:
			escape, inside = b == '\\', b != '"'
		case b == '"':
			inside = true
		case b == '{':
			open = append(open, '}')
		case b == '[':
			open = append(open, ']')
		case (b == '}' || b == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if inside {
		if escape {
			text = text[:len(text)-1]
		}
		text = withoutEscape(text) + `"`
	}
	text = strings.TrimRight(text, " \t\r\n")
	text = strings.TrimSuffix(text, ",")
	end := make([]byte, 0, len(open))
	for i := len(open) - 1; i >= 0; i-- {
		end = append(end, open[i])
	}
	for _, tail := range []string{"", "null", ":null", "ll", "l", "ull", "rue", "ue", "e", "alse", "lse", "se", "0"} {
		if t := text + tail + string(end); json.Valid([]byte(t)) {
			return t
		}
	}
	return text
}

// withoutEscape drops an unfinished \uXXXX from the end of a string.
func withoutEscape(text string) string {
	at := strings.LastIndex(text, `\u`)
	if at < 0 || len(text)-at >= len(`\u0000`) {
		return text
	}
	if backslashes := len(text[:at]) - len(strings.TrimRight(text[:at], `\`)); backslashes%2 == 1 {
		return text // the backslash is itself escaped
	}
	return text[:at]
}

// shortID returns an id of nine letters and digits, as Mistral's templates demand. Equal ids stay equal.
func shortID(id string) string {
	const size, letters = 9, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	short := len(id) == size
	for _, r := range id {
		short = short && strings.ContainsRune(letters, r)
	}
	if short || id == "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	var b bytes.Buffer
	for _, x := range sum[:size] {
		b.WriteByte(letters[int(x)%len(letters)])
	}
	return b.String()
}
