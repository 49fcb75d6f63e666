package tools

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// Choice says which tools a response may or must call: "auto", "none", "required", a tool, or a list of allowed tools.
type Choice struct{ Raw json.RawMessage }

// UnmarshalJSON keeps the choice. Use reads it.
func (c *Choice) UnmarshalJSON(b []byte) error {
	c.Raw = slices.Clone(b)
	return nil
}

// reference names a tool: {"type": "function", "function": {"name": ...}} in chat completions, {"type": "function",
// "name": ...} in responses.
type reference struct {
	Type      string `json:"type"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Function  *named `json:"function"`
	Custom    *named `json:"custom"`
}

type named struct {
	Name string `json:"name"`
}

type allowed struct {
	Mode  string      `json:"mode"`
	Tools []reference `json:"tools"`
}

// choice is a decoded Choice.
type choice struct {
	mode  string   // auto, none or required
	names []string // offered names of the allowed tools; nil: all
	one   bool     // a single tool is named
}

// read decodes a choice among the tools of a request.
func (c Choice) read(s *Set) (out choice, err error) {
	if len(c.Raw) == 0 || string(c.Raw) == "null" {
		return out, nil
	}
	if json.Unmarshal(c.Raw, &out.mode) == nil {
		if !slices.Contains([]string{"", "auto", "none", "required"}, out.mode) {
			return out, wire.BadParam(s.choice, "%s is not auto, none, required or a tool", wire.Clip(out.mode))
		}
		return out, nil
	}
	var one struct {
		reference
		allowed          // as in the responses API
		Allowed *allowed `json:"allowed_tools"`
	}
	if err := json.Unmarshal(c.Raw, &one); err != nil {
		return out, wire.BadParam(s.choice, "must be auto, none, required, a tool or allowed_tools")
	}
	if one.Type != "allowed_tools" {
		out.mode, out.one = "required", one.Type != namespace
		out.names, err = s.named(one.reference)
		return out, err
	}
	list, at := one.allowed, s.choice
	if one.Allowed != nil {
		list, at = *one.Allowed, s.choice+".allowed_tools"
	}
	if out.mode = list.Mode; out.mode != "auto" && out.mode != "required" {
		return out, wire.BadParam(at+".mode", "must be auto or required")
	}
	if len(list.Tools) > limits.Tools {
		return out, wire.BadParam(at+".tools", "%d tools, at most %d are allowed", len(list.Tools), limits.Tools)
	}
	out.names = []string{}
	for _, r := range list.Tools {
		if slices.Contains(s.hosted, r.Type) {
			continue // the tool is dropped
		}
		names, err := s.named(r)
		if err != nil {
			return out, err
		}
		out.names = append(out.names, names...)
	}
	return out, nil
}

// named returns the offered names of the tools that a reference names.
func (s *Set) named(r reference) (names []string, err error) {
	name := r.Name
	switch {
	case r.Function != nil && name == "":
		name = r.Function.Name
	case r.Custom != nil && name == "":
		name = r.Custom.Name
	}
	var close []string // in a namespace that the reference does not name
	for _, t := range s.tools {
		switch {
		case r.Type == namespace:
			if t.Namespace == name && name != "" {
				names = append(names, t.Offered)
			}
		case r.Type == string(Search):
			if t.Kind == Search {
				names = append(names, t.Offered)
			}
		case t.Name == name && t.Namespace == r.Namespace, t.Offered == name && r.Namespace == "":
			names = append(names, t.Offered)
		case t.Name == name && r.Namespace == "":
			close = append(close, t.Offered)
		}
	}
	if len(names) == 0 && len(close) == 1 {
		names = close
	}
	kinds := []string{"", string(Function), string(Custom), string(Search), namespace}
	switch {
	case len(names) > 0:
		return names, nil
	case !slices.Contains(kinds, r.Type):
		return nil, wire.BadParam(s.choice, "this server does not run the tool %s: name a function", wire.Clip(r.Type))
	case name == "":
		return nil, wire.BadParam(s.choice, "a tool must have the type function and a name")
	case len(close) > 1:
		return nil, wire.BadParam(s.choice, "several namespaces have a tool %q: name its namespace", wire.Clip(name))
	case r.Namespace != "":
		name = r.Namespace + "." + name
	}
	return nil, wire.BadParam(s.choice, "no tool is named %q", wire.Clip(name))
}

// Use returns how the response may call the request's tools, and the tools for the chat template.
func (s *Set) Use(c Choice, parallel *bool) (u server.ToolUse, shown []chat.Tool, err error) {
	chosen, err := c.read(s)
	if err != nil {
		return u, nil, err
	}
	allows := func(t Tool) bool { return chosen.names == nil || slices.Contains(chosen.names, t.Offered) }
	u.Required, u.Single = chosen.mode == "required", chosen.one || parallel != nil && !*parallel
	for _, t := range s.tools {
		o, err := server.Offer(t.Shown)
		if err != nil {
			return u, nil, wire.BadParam(t.at, "%v", err)
		}
		if allows(t) {
			u.Offers = append(u.Offers, o)
		}
		// If a grammar enforces the choice, the template gets all tools: prompts that differ only in the choice then share
		// a prefix.
		if allows(t) || u.Required {
			shown = append(shown, t.Shown.WithoutStrict())
		}
	}
	switch {
	case u.Required && len(u.Offers) == 0:
		return u, nil, wire.BadParam(s.choice, "%s", s.none())
	case chosen.mode == "none":
		return server.ToolUse{}, nil, nil
	}
	return u, shown, nil
}

// none says why no tool can be called.
func (s *Set) none() string {
	if len(s.hosted) == 0 {
		return "the request has no tools"
	}
	return "the request has only tools that this server does not run: " + wire.Clip(strings.Join(s.hosted, ", "))
}
