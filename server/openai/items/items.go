package items

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/wire"
)

// Input is the input of a request: a user's text, or a list of items.
type Input struct {
	Raw []json.RawMessage
	bad bool // neither a text nor a list
}

// UnmarshalJSON makes a text a message.
func (in *Input) UnmarshalJSON(b []byte) error {
	*in = Input{}
	var text *string
	if json.Unmarshal(b, &text) == nil {
		if text != nil {
			in.Raw = []json.RawMessage{Message("user", *text)}
		}
		return nil
	}
	in.bad = json.Unmarshal(b, &in.Raw) != nil
	return nil
}

// Message returns an item with a text.
func Message(role, text string) json.RawMessage {
	return encode(map[string]any{"type": typeMessage, "role": role, "content": text})
}

// encode encodes a value that has a JSON form.
func encode(v any) json.RawMessage {
	b, err := wire.Encode(v)
	if err != nil {
		panic(err) // a value of this program
	}
	return slices.Clip(b[:len(b)-1]) // without the line break
}

// Item is a decoded item.
type Item struct {
	*jinja.Dict
	At string // what errors call it
}

// Types of items.
const (
	typeMessage   = "message"
	typeReference = "item_reference"
	typeTrigger   = "compaction_trigger"
)

// Lookup returns an item of an earlier response by its id. It returns an error if there are too many.
type Lookup func(id string) (raw json.RawMessage, ok bool, err error)

// Decode decodes the items of an input. References are replaced by the items that they refer to.
func (in Input) Decode(stored Lookup) ([]Item, error) {
	if in.bad {
		return nil, wire.BadParam("input", "must be a text or a list of items")
	}
	out := make([]Item, 0, len(in.Raw))
	for i, raw := range in.Raw {
		at := fmt.Sprintf("input[%d]", i)
		one, err := Decode(raw, at)
		if err != nil {
			return nil, err
		}
		if one.isReference() {
			found, ok, err := stored(one.text("id"))
			switch {
			case err != nil:
				return nil, err
			case !ok:
				return nil, wire.BadParam(at+".id",
					`no item %q is stored: send the item itself, or let the server store responses with "store": true`,
					wire.Clip(one.text("id")))
			}
			if one, err = Decode(found, at); err != nil {
				return nil, err
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// Decode decodes one item.
func Decode(raw json.RawMessage, at string) (Item, error) {
	d, err := tools.Object(raw, at)
	return Item{d, at}, err
}

// BadField returns a client error about a field of a message. at is what errors call the message.
func BadField(at string, err error) error {
	var e *jsonfit.Error
	if errors.As(err, &e) {
		return wire.BadParam(at+"."+e.Path.String(), "%s", e.Text)
	}
	return wire.BadParam(at, "%v", err)
}

// isReference reports whether an item stands for another one. Its type may be left out.
func (it Item) isReference() bool {
	kind := it.text("type")
	return kind == typeReference || kind == "" && it.Len() == 1 && it.text("id") != ""
}

// Added returns the tools that the items add to those of the request.
func Added(list []Item) (added []tools.Added) {
	for _, it := range list {
		if kind := it.text("type"); kind != "tool_search_output" && kind != "additional_tools" {
			continue
		}
		a := tools.Added{At: it.At + ".tools"}
		for _, tool := range it.list("tools") {
			if text, err := jinja.EncodeJSON(tool); err == nil {
				a.List = append(a.List, json.RawMessage(text))
			}
		}
		added = append(added, a)
	}
	return added
}

// Compacts reports whether the last item asks for a summary instead of an answer, and returns the other items.
func Compacts(list []Item) ([]Item, bool) {
	last := len(list) - 1
	if last < 0 || list[last].text("type") != typeTrigger {
		return list, false
	}
	return list[:last], true
}

// text returns a member of an item, "" if it is not a text.
func (it Item) text(key string) string { return text(it.Dict, key) }

// list returns the elements of a member of an item, nil if it is not a list.
func (it Item) list(key string) []jinja.Value {
	v, _ := it.Get(key)
	if l, ok := v.(*jinja.List); ok {
		return l.Items
	}
	return nil
}

func text(d *jinja.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}
