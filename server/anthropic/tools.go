package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// toolParam is a tool: one that the client describes, one of the types that clients run, or one that Anthropic runs.
type toolParam struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
	Deferred    bool            `json:"defer_loading"` // offered once it is referred to
	Callers     []string        `json:"allowed_callers"`

	MaxCharacters int                     `json:"max_characters"` // of text_editor
	Width         int                     `json:"display_width_px"`
	Height        int                     `json:"display_height_px"`
	Zoom          bool                    `json:"enable_zoom"`
	Configs       map[string]memberConfig `json:"configs"` // of a toolset

	CacheControl *cacheControl `json:"cache_control"` // a breakpoint after the tool
}

// memberConfig says whether a member of a toolset is offered.
type memberConfig struct {
	Enabled *bool `json:"enabled"`
}

// offer is a tool that the model is offered.
type offer struct {
	chat.Tool
	calls.Offer
	at       int  // index in the request; beyond its end: from a message
	shown    bool // not deferred, or referred to
	isFamily bool // calls name an action, which is the name of a tool in the response
}

// offers are the tools of a request.
type offers struct {
	list []offer
	left map[string]string // types of tools that Anthropic runs, which are left out, by name
}

// toolChange is a reference to a tool, or a change of the tools that are offered.
type toolChange struct {
	at      string // path
	name    string
	tool    *toolParam // a new tool; nil: one that is named
	removed bool
}

// emptySchema is that of a tool without inputs.
const emptySchema = `{"type":"object","properties":{}}`

// offers returns the tools that can be offered, as the messages changed them.
func (q *messagesRequest) offers(changes []toolChange) (offers, error) {
	o := offers{left: map[string]string{}}
	searched := slices.ContainsFunc(q.Tools, func(t toolParam) bool { return strings.HasPrefix(t.Type, "tool_search_") })
	for i, t := range q.Tools {
		// What Anthropic would search for, the model is offered at once.
		shown := !t.Deferred || searched || q.ToolChoice.Type == "tool" && t.nameOf() == q.ToolChoice.Name
		if err := o.add(fmt.Sprintf("tools.%d", i), t, i, shown); err != nil {
			return o, err
		}
	}
	for i, c := range changes {
		if err := chat.CheckToolCount(len(o.list)); err != nil {
			return o, err
		}
		if c.tool != nil { // a newer definition replaces an older one
			o.list = slices.DeleteFunc(o.list, func(x offer) bool { return x.Name == c.name })
			if err := o.add(c.at+".tool.definition", *c.tool, len(q.Tools)+i, true); err != nil {
				return o, err
			}
		}
		for k := range o.list {
			if o.list[k].Name == c.name {
				o.list[k].shown = !c.removed
			}
		}
	}
	o.list = slices.DeleteFunc(o.list, func(x offer) bool { return !x.shown })
	return o, nil
}

// nameOf returns a tool's name: that of its type, if it has no other.
func (t toolParam) nameOf() string {
	if family := familyOf(t.Type); family != nil {
		return family.name
	}
	if t.Name == "" {
		return defaultNames[kindOf(t.Type)]
	}
	return t.Name
}

// add adds a tool. One that Anthropic runs, or that only such a tool may call, is left out.
func (o *offers) add(at string, t toolParam, index int, shown bool) error {
	known := t.known()
	custom := t.Type == "" || t.Type == "custom" || len(t.InputSchema) > 0
	indirect := len(t.Callers) > 0 && !slices.Contains(t.Callers, "direct")
	if known == nil && !custom || indirect {
		o.left[t.Name] = t.Type
		return nil
	}
	name := t.nameOf()
	if name == "" {
		return wire.BadParam(at+".name", "missing")
	}
	schema, description := t.InputSchema, t.Description
	if known != nil {
		schema, description = known.schema, known.description
	}
	if s := string(schema); s == "" || s == "null" {
		schema = json.RawMessage(emptySchema)
	}
	tool, err := chat.NewTool(name, description, schema)
	if err != nil {
		return wire.BadParam(at+".input_schema", "must be a JSON schema of an object: %v", err)
	}
	one := offer{Tool: tool, at: index, shown: shown, isFamily: known != nil && known.family,
		Offer: calls.Offer{Tool: calls.Tool{Name: name, Parameters: schema}, Strict: t.Strict}}
	o.list = append(o.list, one)
	return nil
}

// tools returns the tools in the form of templates.
func (o offers) tools() (list []chat.Tool) {
	for _, x := range o.list {
		list = append(list, x.Tool)
	}
	return list
}

// until returns the tools up to an index in the request.
func (o offers) until(index int) offers {
	o.list = slices.DeleteFunc(slices.Clone(o.list), func(x offer) bool { return x.at > index })
	return o
}

// family reports whether calls of a tool name an action.
func (o offers) family(name string) bool {
	return slices.ContainsFunc(o.list, func(x offer) bool { return x.isFamily && x.Name == name })
}

// use returns how the response may call the tools.
func (o offers) use(c toolChoiceParam) (u server.ToolUse, err error) {
	named := false
	for _, x := range o.list {
		named = named || x.Name == c.Name
		if c.Type != "tool" || x.Name == c.Name {
			u.Offers = append(u.Offers, x.Offer)
		}
	}
	u.Single = c.One
	switch c.Type {
	case "", "auto":
	case "none":
		return server.ToolUse{}, nil
	case "tool":
		if kind, left := o.left[c.Name]; left && !named {
			return u, wire.BadParam("tool_choice.name", "%q is a tool that Anthropic runs (%s), which this server does not: "+
				"send a tool with an input_schema, which the client runs", wire.Clip(c.Name), wire.Clip(kind))
		}
		if !named {
			return u, wire.BadParam("tool_choice.name", "no tool is named %q", wire.Clip(c.Name))
		}
		u.Required, u.Single = true, true
	case "any":
		if len(u.Offers) == 0 && len(o.left) > 0 {
			return u, wire.BadParam("tool_choice", "the request has no tools but those that Anthropic runs, which this server "+
				"does not: send tools with an input_schema, which the client runs")
		}
		if len(u.Offers) == 0 {
			return u, wire.BadParam("tool_choice", "the request has no tools")
		}
		u.Required = true
	default:
		return u, wire.BadParam("tool_choice.type", "%q is not auto, any, tool or none", wire.Clip(c.Type))
	}
	return u, nil
}

// change records an addition or a removal of a tool.
func (b *builder) change(x placed) {
	var tool struct {
		Name       string     `json:"name"`
		Definition *toolParam `json:"definition"`
	}
	_ = json.Unmarshal(x.Tool, &tool) // a reference to the tools of an MCP server has no name of a tool
	c := toolChange{at: x.at, name: tool.Name, tool: tool.Definition, removed: x.Type == removalBlock}
	if c.tool != nil {
		c.name = c.tool.nameOf()
		b.tools[c.name] = true
	}
	b.changes = append(b.changes, c)
}
