package server

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
)

// turns makes a conversation of messages in OpenAI's form, for a model that is talked to in some style.
//
// Templates want one system text, at the beginning: those that stand there become one. Developers' messages are system texts. name is
// what errors call a message.
func turns(list []chat.Message, style *talk.Style, name func(i int) string) (c talk.Conversation, err error) {
	called := map[string]string{} // names of tools, by the ids of calls
	for i, m := range list {
		at := name(i)
		switch m.Role {
		case "developer":
			m.Role = "system"
		case "system", "user", assistant, "tool":
		default:
			return c, badParam(at, "the role %s is not supported, only system, developer, user, assistant and tool", clip(m.Role))
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
		if first := len(c.Messages) - 1; m.Role == "system" && m.Parts == nil && first == 0 && c.Messages[0].Role == "system" && c.Messages[0].Parts == nil {
			c.Messages[0].Content = strings.Trim(c.Messages[0].Content+"\n\n"+m.Content, "\n")
			continue
		}
		c.Messages = append(c.Messages, m)
	}
	c.Messages = opening(style, c.Messages)
	return c, nil
}

// parts makes texts and pictures of a message's content, and adds the pictures to those of the messages before. A content of texts is one text.
func parts(m *chat.Message, param string, pictures []runtime.Picture) ([]runtime.Picture, error) {
	var list []chat.Part
	seen := len(pictures)
	for i, p := range m.Parts {
		at := fmt.Sprintf("%s.content[%d]", param, i)
		switch p.Type {
		case "text", "input_text", "output_text":
			list = append(list, chat.Part{Type: "text", Text: p.Text})
		case "refusal":
			list = append(list, chat.Part{Type: "text", Text: textOf(p.Fields, "refusal")})
		case "image_url", "input_image":
			picture, err := picture(p.Fields, at, len(pictures))
			if err != nil {
				return nil, err
			}
			pictures = append(pictures, picture)
			list = append(list, chat.Part{Type: "image"})
		default:
			return nil, badParam(at, "parts of type %s are not supported, only texts and images", clip(p.Type))
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
		m.Parts = nil // many templates know texts only
	}
	return pictures, nil
}

// picture reads the image of a part: {"image_url": {"url": ...}} or {"image_url": ...}.
func picture(fields *jinja.Dict, param string, id int) (p runtime.Picture, err error) {
	param += ".image_url"
	url := textOf(fields, "image_url")
	if d, ok := dictOf(fields, "image_url"); ok {
		url = textOf(d, "url")
	}
	if !strings.HasPrefix(url, "data:") {
		return p, badParam(param, "an image is a data URL; the server fetches nothing from addresses")
	}
	if p, err = decodePicture(url, id); err != nil {
		return p, badParam(param, "%v", err)
	}
	return p, nil
}

func textOf(d *jinja.Dict, key string) string {
	if d == nil {
		return ""
	}
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}
