package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/limits/jsonfit"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// toolChoice says which tools a response may or must call.
type toolChoice struct {
	mode  string   // auto, none or required; "": auto
	names []string // allowed tools; nil: all
	one   bool     // a single tool is named
	text  json.RawMessage
}

// namedTool is {"type": "function", "function": {"name": ...}} in chat completions, {"type": "function", "name": ...}
// in responses.
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
		return "", jsonfit.Errorf("a tool must have the type function and a name")
	}
	return name, nil
}

type allowedTools struct {
	Mode  string      `json:"mode"`
	Tools []namedTool `json:"tools"`
}

func (c *toolChoice) UnmarshalJSON(b []byte) error {
	c.text = slices.Clone(b)
	if jsonfit.Unmarshal(b, &c.mode) == nil {
		if !slices.Contains([]string{"", "auto", "none", "required"}, c.mode) {
			return jsonfit.Errorf("must be auto, none, required or a tool")
		}
		return nil
	}
	var one struct {
		namedTool
		allowedTools               // as in the responses API
		Allowed      *allowedTools `json:"allowed_tools"`
	}
	if err := jsonfit.Unmarshal(b, &one); err != nil {
		return err
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
		return jsonfit.Errorf("the mode of allowed_tools must be auto or required")
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

// use returns how the response may call the request's tools, and the tools for the chat template.
func (c toolChoice) use(tools []chat.Tool, parallel *bool) (u server.ToolUse, shown []chat.Tool, err error) {
	if err := chat.CheckTools(tools); err != nil {
		return u, nil, wire.BadParam("tools", "%v", err)
	}
	if len(c.names) > limits.Tools {
		return u, nil, wire.BadParam("tool_choice", "%d tools, at most %d are allowed", len(c.names), limits.Tools)
	}
	seen := map[string]bool{}
	for i, t := range tools {
		param := fmt.Sprintf("tools[%d]", i)
		if t.Value == nil {
			return u, nil, wire.BadParam(param, "must not be null")
		}
		if kind := t.Type(); kind != "function" {
			return u, nil, wire.BadParam(param, "tool type %s is not supported: use function", wire.Clip(fmt.Sprint(kind)))
		}
		o, err := server.Offer(t)
		if err != nil {
			return u, nil, wire.BadParam(param, "%v", err)
		}
		seen[o.Name] = true
		if c.names != nil && !slices.Contains(c.names, o.Name) {
			continue
		}
		u.Offers = append(u.Offers, o)
	}
	for _, name := range c.names {
		if !seen[name] {
			return u, nil, wire.BadParam("tool_choice", "no tool is named %q", wire.Clip(name))
		}
	}
	u.Required, u.Single = c.mode == "required", c.one || parallel != nil && !*parallel
	switch {
	case u.Required && len(u.Offers) == 0:
		return u, nil, wire.BadParam("tool_choice", "the request has no tools")
	case c.mode == "none":
		return server.ToolUse{}, nil, nil
	}
	for _, t := range tools {
		// If a grammar enforces the choice, the template gets all tools: prompts that differ only in the choice then share
		// a prefix.
		if o, err := server.Offer(t); err == nil && (u.Required || c.names == nil || slices.Contains(c.names, o.Name)) {
			shown = append(shown, t.WithoutStrict())
		}
	}
	return u, shown, nil
}
