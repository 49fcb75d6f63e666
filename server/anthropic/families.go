package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/parse"
)

// family is a toolset: one entry among the tools of a request, whose members are tools in calls. The model is offered
// one tool, whose input names the member as its action.
type family struct {
	name    string
	about   string
	members []member
}

// member is a tool of a family.
type member struct {
	name   string
	inputs []string // their names; one that ends in ? may be missing
}

// families are the toolsets, by their types without the date.
var families = map[string]*family{
	"computer_toolset": {"computer", "Uses a computer's screen, mouse and keyboard, one action at a time.", members(`
screenshot
zoom region
cursor_position
mouse_move coordinate
left_click coordinate? text?
right_click coordinate? text?
middle_click coordinate? text?
double_click coordinate? text?
triple_click coordinate? text?
left_click_drag start_coordinate coordinate text?
left_mouse_down
left_mouse_up
scroll scroll_direction scroll_amount coordinate? text?
type text
key text repeat?
hold_key text duration
wait duration`)},
	"browser_toolset": {"browser", "Uses a web browser, one action at a time.", members(`
navigate url tab_id?
list_tabs
new_tab
switch_tab tab_id
close_tab tab_id
read_page filter? ref? depth? tab_id?
get_page_text tab_id?
find query tab_id?
read_console tab_id?
read_network tab_id?
form_input target value tab_id?
file_upload target paths? document_ids? tab_id?
scroll_to target tab_id?
screenshot tab_id?
zoom region tab_id?
left_click target modifiers? tab_id?
right_click target modifiers? tab_id?
middle_click target modifiers? tab_id?
double_click target modifiers? tab_id?
triple_click target modifiers? tab_id?
hover target tab_id?
left_click_drag from target tab_id?
left_mouse_down target tab_id?
left_mouse_up target tab_id?
mouse_move target tab_id?
scroll target scroll_direction scroll_amount? tab_id?
type text tab_id?
key text repeat? tab_id?
hold_key text duration tab_id?
wait duration tab_id?
javascript_exec text tab_id?`)},
}

// members reads a line for each member: its name and those of its inputs.
func members(lines string) (list []member) {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		words := strings.Fields(line)
		list = append(list, member{words[0], words[1:]})
	}
	return list
}

// familyOf returns the toolset of a type, of any date; nil: it is none.
func familyOf(kind string) *family {
	name, _, _ := cutLast(kind, "_")
	return families[name]
}

// tool describes a family without members that are left out or disabled.
func (f *family) tool(t toolParam, without []string) *knownTool {
	about := f.about + " Actions: "
	actions, inputs := []string{}, []string{"action"}
	for _, m := range f.members {
		if c := t.Configs[m.name]; slices.Contains(without, m.name) || c.Enabled != nil && !*c.Enabled {
			continue
		}
		if len(actions) > 0 {
			about += ", "
		}
		actions, about = append(actions, m.name), about+m.name
		if len(m.inputs) > 0 {
			about += " (" + strings.Join(m.inputs, ", ") + ")"
		}
		for _, name := range m.inputs {
			inputs = append(inputs, strings.TrimSuffix(name, "?"))
		}
	}
	return &knownTool{about + ". Inputs with ? may be left out.",
		schemaOf(inputs, map[string][]string{"action": actions}, "action"), true}
}

// withAction returns a member's input as that of its family.
func withAction(action string, input *jinja.Dict) *jinja.Dict {
	d := jinja.NewDict()
	d.Put("action", action)
	input.Each(func(k, v jinja.Value) bool {
		_ = d.Set(k, v) // keys of a dictionary are hashable
		return true
	})
	return d
}

// memberCall returns the member and its input that a call of a family names. A call without an action is unchanged.
func memberCall(c parse.ToolCall) (name string, input json.RawMessage) {
	d, err := jinja.DecodeVars(c.Arguments)
	if err != nil {
		return c.Name, c.Arguments
	}
	action, _ := d.Get("action")
	name, ok := action.(string)
	if !ok {
		return c.Name, c.Arguments
	}
	rest := jinja.NewDict()
	d.Each(func(k, v jinja.Value) bool {
		if k != "action" {
			_ = rest.Set(k, v) // keys of a dictionary are hashable
		}
		return true
	})
	text, err := jinja.EncodeJSON(rest)
	if err != nil {
		return c.Name, c.Arguments
	}
	return name, json.RawMessage(text)
}
