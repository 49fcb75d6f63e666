package parse

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ingotml/ingot/chat/parse/notation"
)

// jsonCall has the keys of a call in all published templates.
type jsonCall struct {
	ID         json.RawMessage `json:"id"`
	CallID     json.RawMessage `json:"tool_call_id"`
	Name       string          `json:"name"`
	ToolName   string          `json:"tool_name"`
	Arguments  json.RawMessage `json:"arguments"`
	Parameters json.RawMessage `json:"parameters"`
	Function   json.RawMessage `json:"function"` // as in OpenAI's API
}

// parseJSON parses objects with a name and arguments, in sequence or in lists.
func parseJSON(_ tools, body string, complete bool) ([]ToolCall, error) {
	calls, err := jsonCalls(body)
	if err != nil {
		kind := ErrCall
		if !complete {
			kind = ErrIncomplete
		}
		return nil, fmt.Errorf("%w: %w", kind, err)
	}
	return calls, nil
}

// parseKeyed parses objects whose only key is the name of a call and whose value has its arguments, in a list.
func parseKeyed(_ tools, body string, complete bool) ([]ToolCall, error) {
	kind := ErrCall
	if !complete {
		kind = ErrIncomplete
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(notation.EscapeControls(strings.ToValidUTF8(body, "\uFFFD"))), &list); err != nil {
		return nil, fmt.Errorf("%w: %w", kind, err)
	}
	var calls []ToolCall
	for _, one := range list {
		if len(one) != 1 {
			return nil, fmt.Errorf("%w: an object with %d keys, not with the name alone", kind, len(one))
		}
		for name, v := range one {
			args, err := arguments(v)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", kind, err)
			}
			calls = append(calls, ToolCall{Name: name, Arguments: args})
		}
	}
	if len(calls) == 0 {
		return nil, fmt.Errorf("%w: empty list", kind)
	}
	return calls, nil
}

func jsonCalls(body string) ([]ToolCall, error) {
	d := json.NewDecoder(strings.NewReader(notation.EscapeControls(strings.ToValidUTF8(body, "\uFFFD"))))
	var calls []ToolCall
	for {
		var v json.RawMessage
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		list := []json.RawMessage{v}
		if v[0] == '[' {
			if err := json.Unmarshal(v, &list); err != nil {
				return nil, err
			}
		}
		for _, one := range list {
			c, err := oneCall(one)
			if err != nil {
				return nil, err
			}
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil, errors.New("empty body")
	}
	return calls, nil
}

func oneCall(v json.RawMessage) (ToolCall, error) {
	var c jsonCall
	if len(v) == 0 || v[0] != '{' {
		return ToolCall{}, errors.New("not a JSON object")
	}
	if err := json.Unmarshal(v, &c); err != nil {
		return ToolCall{}, err
	}
	if len(c.Function) > 0 && c.Function[0] == '{' && c.Name == "" {
		id := cmp.Or(text(c.ID), text(c.CallID))
		inner, err := oneCall(c.Function)
		inner.ID = cmp.Or(inner.ID, id)
		return inner, err
	}
	name := cmp.Or(c.Name, c.ToolName, text(c.Function))
	if name == "" {
		return ToolCall{}, errors.New("no name")
	}
	args := c.Arguments
	if len(args) == 0 {
		args = c.Parameters
	}
	args, err := arguments(args)
	if err != nil {
		return ToolCall{}, err
	}
	return ToolCall{ID: cmp.Or(text(c.ID), text(c.CallID)), Name: name, Arguments: args}, nil
}

// arguments accepts a JSON object, a string that contains one, or nothing.
func arguments(v json.RawMessage) (json.RawMessage, error) {
	s := string(v)
	if strings.HasPrefix(s, `"`) {
		s = text(v)
	}
	if s = strings.Trim(s, spaces); s == "" || s == "null" {
		return json.RawMessage("{}"), nil
	}
	if s[0] != '{' {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return notation.Compact(s)
}

// text returns the text of a JSON string or number, otherwise "".
func text(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(v, &n) == nil {
		return n.String()
	}
	return ""
}

// parseBare parses a response that is JSON or a list of Python calls. It is content unless all calls name offered
// tools.
func parseBare(t tools, body string, complete bool) ([]ToolCall, error) {
	if complete {
		calls, err := jsonCalls(body)
		if err != nil {
			calls, err = pythonList(body)
		}
		if err != nil {
			return nil, errNoCall
		}
		for _, c := range calls {
			if _, ok := t[c.Name]; !ok {
				return nil, errNoCall
			}
		}
		return calls, nil
	}
	// If the text begins with {"name": "TOOL" or [TOOL(, it is an incomplete call.
	rest := strings.TrimLeft(strings.TrimPrefix(body, "["), spaces)
	object := strings.TrimLeft(strings.TrimPrefix(rest, "{"), spaces)
	object = strings.TrimLeft(strings.TrimPrefix(object, `"name"`), spaces+":")
	for name := range t {
		if strings.HasPrefix(object, string(notation.Quote(name))) || strings.HasPrefix(rest, name+"(") {
			return nil, ErrIncomplete
		}
	}
	return nil, errNoCall
}

// parseMistral parses a list of calls, or NAME[CALL_ID]ID[ARGS]{...}, in which [CALL_ID]ID and [ARGS] are optional.
func parseMistral(t tools, body string, complete bool) ([]ToolCall, error) {
	if firstByte([]byte(body)) == '[' {
		return parseJSON(t, body, complete)
	}
	at := strings.IndexByte(body, '{')
	if at < 0 {
		return nil, fmt.Errorf("%w: no arguments", ErrIncomplete)
	}
	name, _, _ := strings.Cut(body[:at], "[ARGS]")
	name, id, _ := strings.Cut(name, "[CALL_ID]")
	if name = strings.Trim(name, spaces); name == "" {
		return parseJSON(t, body, complete) // the object contains the name
	}
	args, err := arguments(json.RawMessage(body[at:]))
	if err != nil {
		kind := ErrCall
		if !complete {
			kind = ErrIncomplete
		}
		return nil, fmt.Errorf("%w: %w", kind, err)
	}
	return []ToolCall{{ID: strings.Trim(id, spaces), Name: name, Arguments: args}}, nil
}

// deepSeekMark separates the name of a call of DeepSeek from its arguments, or the type from both.
const deepSeekMark = "<｜tool▁sep｜>"

// parseDeepSeek parses NAME<sep>{...} of V3.1, or TYPE<sep>NAME and a JSON code fence of V3 and R1.
func parseDeepSeek(_ tools, body string, complete bool) ([]ToolCall, error) {
	wrong := func(why string) ([]ToolCall, error) {
		if !complete {
			return nil, fmt.Errorf("%w: %s", ErrIncomplete, why)
		}
		return nil, fmt.Errorf("%w: %s", ErrCall, why)
	}
	name, rest, ok := strings.Cut(body, deepSeekMark)
	if !ok {
		return wrong("no separator")
	}
	if fenced, args, ok := strings.Cut(rest, "```"); ok && !strings.Contains(fenced, "{") {
		if strings.Trim(name, spaces) != "function" {
			return wrong("the type is not function")
		}
		name = fenced
		args = strings.TrimPrefix(args, "json")
		rest = strings.TrimSuffix(strings.TrimRight(args, spaces), "```")
	}
	if name = strings.Trim(name, spaces); name == "" || strings.ContainsAny(name, spaces) {
		return wrong("no name")
	}
	args, err := arguments(json.RawMessage(strings.Trim(rest, spaces)))
	if err != nil {
		return wrong(err.Error())
	}
	if !complete && len(strings.Trim(rest, spaces)) == 0 {
		return wrong("no arguments")
	}
	return []ToolCall{{Name: name, Arguments: args}}, nil
}

// parseSolar parses ID<|tool_call:name|>NAME<|tool_call:args|>{...}.
func parseSolar(_ tools, body string, complete bool) ([]ToolCall, error) {
	kind := ErrCall
	if !complete {
		kind = ErrIncomplete
	}
	id, rest, ok := strings.Cut(body, solarName)
	name, args, okArgs := strings.Cut(rest, solarArgs)
	if name = strings.Trim(name, spaces); !ok || !okArgs || name == "" {
		return nil, fmt.Errorf("%w: no name or no arguments", kind)
	}
	if args = strings.Trim(args, spaces); args == "" && !complete {
		return nil, fmt.Errorf("%w: no arguments", kind)
	}
	v, err := arguments(json.RawMessage(args))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", kind, err)
	}
	return []ToolCall{{ID: strings.Trim(id, spaces), Name: name, Arguments: v}}, nil
}

// Separators of a call of Solar Open.
const (
	solarName  = "<|tool_call:name|>"
	solarArgs  = "<|tool_call:args|>"
	solarClose = "<|tool_call:end|>"
)
