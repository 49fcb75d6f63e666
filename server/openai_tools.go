package server

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/limits"
)

// toolChoice is which tools an answer may call, or has to.
type toolChoice struct {
	mode  string   // auto, none or required; "" is auto
	names []string // of the tools that are meant; nil: all
	one   bool     // a single one was named
	text  json.RawMessage
}

// namedTool is {"type": "function", "function": {"name": ...}}, as chat completions have it, or {"type": "function", "name": ...}.
type namedTool struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

func (t namedTool) name() (string, error) {
	name := t.Name
	if name == "" {
		name = t.Function.Name
	}
	if t.Type != "function" || name == "" {
		return "", fmt.Errorf("tool_choice: a tool is {\"type\": \"function\"} with a name, other types are not supported")
	}
	return name, nil
}

type allowedTools struct {
	Mode  string      `json:"mode"`
	Tools []namedTool `json:"tools"`
}

func (c *toolChoice) UnmarshalJSON(b []byte) error {
	c.text = slices.Clone(b)
	if json.Unmarshal(b, &c.mode) == nil {
		if !slices.Contains([]string{"", "auto", "none", "required"}, c.mode) {
			return fmt.Errorf("tool_choice is auto, none, required, or names a tool")
		}
		return nil
	}
	var one struct {
		namedTool
		allowedTools               // as in responses
		Allowed      *allowedTools `json:"allowed_tools"`
	}
	if err := json.Unmarshal(b, &one); err != nil {
		return fmt.Errorf("tool_choice: %w", err)
	}
	if one.Type != "allowed_tools" {
		name, err := one.name()
		c.mode, c.names, c.one = "required", []string{name}, true
		return err
	}
	allowed := one.allowedTools
	if one.Allowed != nil {
		allowed = *one.Allowed
	}
	if c.mode = allowed.Mode; c.mode != "auto" && c.mode != "required" {
		return fmt.Errorf("tool_choice: the mode of allowed_tools is auto or required")
	}
	c.names = []string{}
	for _, t := range allowed.Tools {
		name, err := t.name()
		if err != nil {
			return err
		}
		c.names = append(c.names, name)
	}
	return nil
}

// use is how the answer may call the tools of a request; shown are those that the model is told of, in the form that templates know.
func (c toolChoice) use(tools []chat.Tool, parallel *bool) (u toolUse, shown []chat.Tool, err error) {
	if err := chat.CheckTools(tools); err != nil {
		return u, nil, badParam("tools", "%v", err)
	}
	if len(c.names) > limits.Tools {
		return u, nil, badParam("tool_choice", "%d tools; at most %d", len(c.names), limits.Tools)
	}
	seen := map[string]bool{}
	for i, t := range tools {
		param := fmt.Sprintf("tools[%d]", i)
		if t.Value == nil {
			return u, nil, badParam(param, "it is null")
		}
		if kind, _ := t.Value.Get("type"); kind != "function" {
			return u, nil, badParam(param, "tools of type %s are not supported, only functions", clip(fmt.Sprint(kind)))
		}
		o, err := offer(t)
		if err != nil {
			return u, nil, badParam(param, "%v", err)
		}
		seen[o.Name] = true
		if c.names != nil && !slices.Contains(c.names, o.Name) {
			continue
		}
		u.offers = append(u.offers, o)
	}
	for _, name := range c.names {
		if !seen[name] {
			return u, nil, badParam("tool_choice", "there is no tool %q", clip(name))
		}
	}
	u.must, u.once = c.mode == "required", c.one || parallel != nil && !*parallel
	switch {
	case u.must && len(u.offers) == 0:
		return u, nil, badParam("tool_choice", "there is no tool to call")
	case c.mode == "none":
		return toolUse{}, nil, nil
	}
	for _, t := range tools {
		// Where a grammar keeps the model to some of them it is told of all, so that prompts which differ in the choice alone begin alike.
		if o, err := offer(t); err == nil && (u.must || c.names == nil || slices.Contains(c.names, o.Name)) {
			shown = append(shown, withoutStrict(t))
		}
	}
	return u, shown, nil
}

// withoutStrict leaves out of a tool what is for the server.
func withoutStrict(t chat.Tool) chat.Tool {
	fn, ok := dictOf(t.Value, "function")
	if !ok {
		return t
	}
	if _, ok := fn.Get("strict"); !ok {
		return t
	}
	return chat.Tool{Value: replaced(t.Value, "function", replaced(fn, "strict", nil))}
}

// replaced is a copy of a dict with another value for a key, or without it.
func replaced(d *jinja.Dict, key string, value *jinja.Dict) *jinja.Dict {
	out := jinja.NewDict()
	d.Each(func(k, v jinja.Value) bool {
		switch {
		case k != key:
			_ = out.Set(k, v) // it was a key before
		case value != nil:
			_ = out.Set(k, value)
		}
		return true
	})
	return out
}
