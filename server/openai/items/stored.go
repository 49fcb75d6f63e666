package items

import (
	"crypto/rand"
	"encoding/json"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
)

// IsFromUser reports whether an item is a message of the user.
func (it Item) IsFromUser() bool {
	kind := it.text("type")
	return (kind == "" || kind == typeMessage) && strings.EqualFold(it.text("role"), "user")
}

// Stored returns an item in the form in which it is stored and listed: with an id, and a message with its type and a
// list of parts.
func (it Item) Stored() (id string, raw json.RawMessage) {
	d := it.Clone()
	if d == nil {
		d = jinja.NewDict()
	}
	if kind := it.text("type"); kind == "" || kind == typeMessage {
		d.Put("type", typeMessage)
		d.Put("status", "completed")
		content, _ := it.Get("content")
		if text, ok := content.(string); ok {
			part := jinja.NewDict()
			part.Put("type", "input_text")
			if strings.EqualFold(it.text("role"), chat.Assistant) {
				part.Put("type", "output_text")
				part.Put("annotations", jinja.NewList())
			}
			part.Put("text", text)
			d.Put("content", jinja.NewList(part))
		}
	}
	if id = it.text("id"); id == "" {
		id = "item_" + strings.ToLower(rand.Text())
		d.Put("id", id)
	}
	text, err := jinja.EncodeJSON(d)
	if err != nil {
		text = "{}" // not possible: the item was decoded from JSON
	}
	return id, json.RawMessage(text)
}
