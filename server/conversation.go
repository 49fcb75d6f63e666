package server

import (
	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/server/talk"
)

// withImageMessages prepends the image's system message, unless the conversation has one, and the image's messages.
// An empty system message counts as none, and also suppresses the image's.
func withImageMessages(style *talk.Style, list []chat.Message) []chat.Message {
	if style.Template == nil {
		return list
	}
	var own []chat.Message
	switch {
	case len(list) > 0 && list[0].Role == "system":
		if list[0].Content != "" || list[0].Parts != nil {
			own = append(own, list[0])
		}
		list = list[1:]
	case style.Texts.System != "":
		own = append(own, chat.Message{Role: "system", Content: style.Texts.System})
	}
	for _, t := range style.Texts.Messages {
		own = append(own, chat.Message{Role: t.Role, Content: t.Content})
	}
	return append(own, list...)
}
