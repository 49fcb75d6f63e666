package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
)

// plain converts a value to Go's own types, which templates can range over and index.
func plain(v jinja.Value) any {
	switch v := v.(type) {
	case *jinja.Dict:
		m := map[string]any{}
		v.Each(func(k, x jinja.Value) bool {
			m[fmt.Sprint(k)] = plain(x)
			return true
		})
		return m
	case *jinja.List:
		list := make([]any, len(v.Items))
		for i, x := range v.Items {
			list[i] = plain(x)
		}
		return list
	case *big.Int: // as Ollama has it; a template could call methods of big.Int that compute for hours
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			return v.String()
		}
		return f
	}
	return v
}

// goMessage is a message as Go templates see it.
type goMessage struct {
	Role, Content, Thinking, ToolName, ToolCallID string
	ToolCalls                                     []goToolCall
	Images                                        []any
}

type goToolCall struct {
	ID       string
	Function goCall
}

type goCall struct {
	Index     int
	Name      string
	Arguments goObject
}

// goObject is an object that a template can range over and that prints as JSON. Like all values here, it prints with
// Format, which a template cannot call: the output of a String method called by a template would not count against the
// limits.
type goObject map[string]any

// Format implements fmt.Formatter.
func (o goObject) Format(f fmt.State, _ rune) {
	b, err := json.Marshal(map[string]any(o))
	if err != nil {
		b = []byte("{}")
	}
	_, _ = f.Write(b)
}

// collate merges adjacent messages of one role, except tool messages, and joins the contents of all system messages.
func collate(in []Message) (out []*goMessage, system string) {
	var systems, row []string
	flush := func() {
		if len(out) > 0 {
			out[len(out)-1].Content = strings.Join(row, "\n\n")
		}
		row = nil
	}
	for _, m := range in {
		if m.Role == "system" {
			systems = append(systems, m.Content)
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role && m.Role != "tool" {
			out[n-1].ToolCalls = append(out[n-1].ToolCalls, goCalls(m.ToolCalls)...)
		} else {
			flush()
			out = append(out, &goMessage{Role: m.Role, Thinking: m.Reasoning, ToolName: m.Name,
				ToolCallID: m.ToolCallID, ToolCalls: goCalls(m.ToolCalls)})
		}
		if m.Content != "" {
			row = append(row, m.Content)
		}
	}
	flush()
	return out, strings.Join(systems, "\n\n")
}

func goCalls(in []ToolCall) []goToolCall {
	var out []goToolCall
	for i, c := range in {
		args, _ := plain(c.Arguments).(map[string]any)
		out = append(out, goToolCall{c.ID, goCall{i, c.Name, args}})
	}
	return out
}

// goTool is a tool as Go templates see it. It prints as JSON with the keys in their original order.
type goTool struct {
	Type     string
	Function goFunction
	text     string // its JSON
}

type goFunction struct {
	Name, Description string
	Parameters        goParameters
	text              string
}

type goParameters struct {
	Type       string
	Required   []string
	Properties map[string]any
	text       string
}

// Format implements fmt.Formatter.
func (t goTool) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.json()) }

// Format implements fmt.Formatter.
func (t goFunction) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.json()) }

// Format implements fmt.Formatter.
func (t goParameters) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.json()) }

func (t goTool) json() string       { return orEmpty(t.text) }
func (t goFunction) json() string   { return orEmpty(t.text) }
func (t goParameters) json() string { return orEmpty(t.text) }

func orEmpty(text string) string {
	if text == "" {
		return "{}"
	}
	return text
}

// toMarshal replaces tools by their JSON for the template function json.
func toMarshal(v any) any {
	switch v := v.(type) {
	case goTool:
		return json.RawMessage(v.json())
	case goFunction:
		return json.RawMessage(v.json())
	case goParameters:
		return json.RawMessage(v.json())
	case []goTool:
		list := make([]any, len(v))
		for i, t := range v {
			list[i] = toMarshal(t)
		}
		return list
	}
	return v
}

func object(v jinja.Value) string {
	s, err := jinja.EncodeJSON(v)
	if err != nil {
		return "{}"
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}

func goTools(tools []Tool) []goTool {
	var out []goTool
	for _, t := range tools {
		g := goTool{Type: field(t.Value, "type"), text: object(t.Value)}
		fv, _ := t.Value.Get("function")
		if f, ok := fv.(*jinja.Dict); ok {
			g.Function = goFunction{Name: field(f, "name"), Description: field(f, "description"), text: object(f)}
			pv, _ := f.Get("parameters")
			if p, ok := pv.(*jinja.Dict); ok {
				g.Function.Parameters = goParameters{Type: field(p, "type"), text: object(p)}
				props, _ := p.Get("properties")
				g.Function.Parameters.Properties, _ = plain(props).(map[string]any)
				required, _ := p.Get("required")
				list, _ := plain(required).([]any)
				for _, x := range list {
					g.Function.Parameters.Required = append(g.Function.Parameters.Required, fmt.Sprint(x))
				}
			}
		}
		out = append(out, g)
	}
	return out
}
