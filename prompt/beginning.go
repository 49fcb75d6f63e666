package prompt

import (
	"context"
	"slices"

	"github.com/ingotml/ingot/chat"
)

// Beginning returns the tokens with which every prompt of a conversation that continues c begins: up to where two
// different user turns after it diverge. If c waits for the model's turn, because its last message is a user's or a
// tool's, that is its whole prompt. Without a template, it is the text of the messages.
func (s *Style) Beginning(ctx context.Context, m Model, c Conversation) ([]int32, error) {
	c.AddGenerationPrompt = true
	waits := false
	if n := len(c.Messages); n > 0 {
		waits = slices.Contains([]string{"user", "tool"}, c.Messages[n-1].Role)
	}
	if waits || !s.HasTemplate() {
		p, err := s.Begin(ctx, m, c)
		if err != nil {
			return nil, err
		}
		return p.IDs, nil
	}
	var ids [2][]int32
	for i, text := range []string{"a", "1"} {
		next := c
		next.Messages = append(slices.Clip(c.Messages), chat.Message{Role: "user", Content: text})
		p, err := s.Begin(ctx, m, next)
		if err != nil {
			return nil, err
		}
		ids[i] = p.IDs
	}
	n := 0
	for n < min(len(ids[0]), len(ids[1])) && ids[0][n] == ids[1][n] {
		n++
	}
	return ids[0][:n], nil
}
