package prompt

import "github.com/ingotml/ingot/chat"

// WithImageMessages prepends the image's system message, unless the list starts with one, and then inserts the image's
// messages. An empty system message counts as none, and also suppresses the image's. Without a template, it returns the
// list.
func (s *Style) WithImageMessages(list []chat.Message) []chat.Message {
	if !s.HasTemplate() {
		return list
	}
	own, rest := s.system(list)
	for _, t := range s.Texts.Messages {
		own = append(own, chat.Message{Role: t.Role, Content: t.Content})
	}
	return append(own, rest...)
}

// WithSystem is WithImageMessages without the image's messages, for a conversation that continues another one.
func (s *Style) WithSystem(list []chat.Message) []chat.Message {
	if !s.HasTemplate() {
		return list
	}
	own, rest := s.system(list)
	return append(own, rest...)
}

// system returns the conversation's system message, if it has one, and the messages after it.
func (s *Style) system(list []chat.Message) (own, rest []chat.Message) {
	switch {
	case len(list) > 0 && list[0].Role == "system":
		if list[0].Content != "" || list[0].Parts != nil {
			own = append(own, list[0])
		}
		list = list[1:]
	case s.Texts.System != "":
		own = append(own, chat.Message{Role: "system", Content: s.Texts.System})
	}
	return own, list
}

// UserTurn returns a user message with n pictures before its text.
func UserTurn(text string, n int) chat.Message {
	m := chat.Message{Role: "user", Content: text}
	if n > 0 {
		m.Parts = TextParts(text, n)
	}
	return m
}
