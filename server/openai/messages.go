package openai

import (
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server/wire"
)

// turns converts messages in OpenAI's form to a conversation for a model. Developer messages are system messages. name
// returns what errors call a message.
func turns(list []chat.Message, style *prompt.Style, name func(i int) string,
	view viewer) (c prompt.Conversation, err error) {
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
		show := shower{at: at, newest: i == len(list)-1 && m.Role == "user", viewer: view}
		if c.Pictures, err = show.message(&m, c.Pictures); err != nil {
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
