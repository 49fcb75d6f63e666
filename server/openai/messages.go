package openai

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// turns converts messages in OpenAI's form to a conversation for a model. Developer messages are system messages. name
// returns what errors call a message.
func turns(list []chat.Message, style *prompt.Style, name func(i int) string) (c prompt.Conversation, err error) {
	called := map[string]string{} // names of called tools, by call id
	for i, m := range list {
		at := name(i)
		switch m.Role = strings.ToLower(m.Role); m.Role {
		case "developer":
			m.Role = "system"
		case "system", "user", chat.Assistant, "tool":
		default:
			return c, wire.BadParam(at, "role %s is not supported: use system, developer, user, assistant or tool",
				wire.Clip(m.Role))
		}
		if c.Pictures, err = parts(&m, at, c.Pictures); err != nil {
			return c, err
		}
		for _, call := range m.ToolCalls {
			called[call.ID] = call.Name
		}
		if m.Role == "tool" && m.Name == "" {
			m.Name = called[m.ToolCallID]
		}
		m.At = at
		c.Messages = append(c.Messages, m)
	}
	c.Messages = style.WithImageMessages(c.Messages)
	return c, nil
}

// parts normalizes a message's content to text and image parts, and appends its pictures to those of earlier messages.
// Content without pictures becomes a single text.
func parts(m *chat.Message, param string, pictures []runtime.Picture) ([]runtime.Picture, error) {
	var list []chat.Part
	seen := len(pictures)
	for i, p := range m.Parts {
		at := fmt.Sprintf("%s.content[%d]", param, i)
		switch p.Type {
		case "text", "input_text", "output_text":
			list = append(list, chat.Part{Type: "text", Text: p.Text})
		case "refusal":
			list = append(list, chat.Part{Type: "text", Text: p.Field("refusal")})
		case "image_url", "input_image":
			picture, err := picture(p, at, len(pictures))
			if err != nil {
				return nil, err
			}
			pictures = append(pictures, picture)
			list = append(list, chat.Part{Type: "image"})
		default:
			return nil, wire.BadParam(at, "part type %s is not supported: use text or images", wire.Clip(p.Type))
		}
	}
	if m.Parts == nil {
		return pictures, nil
	}
	m.Content = ""
	for _, p := range list {
		m.Content += p.Text
	}
	if m.Parts = list; len(pictures) == seen {
		m.Parts = nil // many templates support only text
	}
	return pictures, nil
}

// picture decodes the image of a part.
func picture(part chat.Part, param string, id int) (p runtime.Picture, err error) {
	param += ".image_url"
	url := part.PictureURL()
	if !strings.HasPrefix(url, "data:") {
		return p, wire.BadParam(param, "must be a data URL: the server does not fetch images")
	}
	if p, err = server.DecodePicture(url, id); err != nil {
		return p, wire.BadParam(param, "%v", err)
	}
	return p, nil
}
