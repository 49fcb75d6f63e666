package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/server/openai/items"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/wire"
)

// chatMessages are the messages of a chat completion.
type chatMessages []json.RawMessage

// decode returns the messages. Roles may have any case. Calls and results in the form that tools had before they were
// called so (function_call, role function) and calls of custom tools become calls and results of functions.
func (list chatMessages) decode() ([]chat.Message, error) {
	if len(list) == 0 {
		return nil, wire.BadParam("messages", "at least one message is required")
	}
	out := make([]chat.Message, len(list))
	legacy := "" // id of the last call in the older form
	for i, raw := range list {
		at := fmt.Sprintf("messages[%d]", i)
		d, err := tools.Object(raw, at)
		if err != nil {
			return nil, err
		}
		role, _ := d.Get("role")
		if text, ok := role.(string); ok {
			d.Put("role", strings.ToLower(text))
		}
		switch role, _ = d.Get("role"); role {
		case chat.Assistant:
			d = functionCalls(d, i, &legacy)
		case "function":
			d.Put("role", "tool")
			d.Put("tool_call_id", legacy)
		}
		content, _ := d.Get("content")
		if object, ok := content.(*jinja.Dict); ok && (role == "tool" || role == "function") {
			text, err := jinja.EncodeJSON(object) // as some clients send results
			if err != nil {
				return nil, wire.BadParam(at+".content", "%v", err)
			}
			d.Put("content", text)
		}
		if err := out[i].SetFields(d); err != nil {
			return nil, items.BadField(at, err)
		}
	}
	return out, nil
}

// functionCalls returns a message of the model in which all calls are calls of functions. It sets legacy to the id of a
// call in the older form, which has none.
func functionCalls(d *jinja.Dict, i int, legacy *string) *jinja.Dict {
	content, _ := d.Get("content")
	refusal, _ := d.Get("refusal")
	call, given := d.Get("function_call")
	calls, _ := d.Get("tool_calls")
	list, _ := calls.(*jinja.List)
	out := jinja.NewDict()
	d.Each(func(k, v jinja.Value) bool {
		if k != "function_call" && k != "refusal" && k != "tool_calls" {
			_ = out.Set(k, v) // cannot fail: k is a dict's key
		}
		return true
	})
	if text, ok := refusal.(string); ok && (content == nil || content == "") {
		out.Put("content", text)
	}
	if fn, ok := call.(*jinja.Dict); given && ok && list == nil {
		*legacy = fmt.Sprintf("call_%d", i)
		one := jinja.NewDict()
		one.Put("id", *legacy)
		one.Put("type", "function")
		one.Put("function", fn)
		out.Put("tool_calls", jinja.NewList(one))
		return out
	}
	if list == nil {
		if calls != nil {
			out.Put("tool_calls", calls) // an error
		}
		return out
	}
	changed := &jinja.List{}
	for _, v := range list.Items {
		one, _ := v.(*jinja.Dict)
		if custom, ok := one.Get("custom"); ok {
			v = customCall(one, custom)
		}
		changed.Items = append(changed.Items, v)
	}
	out.Put("tool_calls", changed)
	return out
}

// customCall returns the call of a function that stands for a call of a custom tool.
func customCall(call *jinja.Dict, custom jinja.Value) jinja.Value {
	tool, ok := custom.(*jinja.Dict)
	if !ok {
		return call
	}
	name, _ := tool.Get("name")
	input, _ := tool.Get("input")
	nameText, _ := name.(string)
	inputText, _ := input.(string)
	fn, out := jinja.NewDict(), jinja.NewDict()
	fn.Put("name", tools.Joined("", nameText))
	fn.Put("arguments", tools.Arguments(inputText))
	id, _ := call.Get("id")
	out.Put("id", id)
	out.Put("type", "function")
	out.Put("function", fn)
	return out
}
