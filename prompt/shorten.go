package prompt

import (
	"context"
	"errors"
	"slices"

	"github.com/ingotml/ingot/chat"
)

// Shorten builds the prompt of a conversation without its oldest messages, as few as possible for fits to accept the
// prompt. System messages and the last message stay, as does the last user message: it says what calls after it are
// for. If even the shortest prompt does not fit, it is returned. build is called once for each length that is tried.
func Shorten(ctx context.Context, c Conversation, build func(Conversation) (*Prompt, error),
	fits func(*Prompt) (bool, error)) (*Prompt, error) {
	list := droppable(c.Messages)
	try := func(n int) (p *Prompt, ok bool, err error) {
		p, err = build(without(c, list[:n]))
		switch {
		case err == nil:
			ok, err = fits(p)
		case errors.Is(err, ErrLong) && n < len(list):
			err = nil
		}
		return p, ok, err
	}
	best, ok, err := try(0)
	if err != nil || ok || len(list) == 0 {
		return best, err
	}
	if best, ok, err = try(len(list)); err != nil || !ok {
		return best, err
	}
	for few, all := 0, len(list); few+1 < all; {
		n := (few + all) / 2
		p, ok, err := try(n)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case ok && err == nil:
			best, all = p, n
		default: // too long, or the template refuses a conversation that begins there
			few = n
		}
	}
	return best, nil
}

// droppable lists what can be left out of a conversation, in that order: the oldest messages first, a call and its
// results together.
func droppable(messages []chat.Message) (list [][]int) {
	var units [][]int // indexes of messages
	for i, m := range messages {
		switch {
		case m.Role == "system" || m.Role == "developer":
		case m.Role == "tool" && len(units) > 0:
			units[len(units)-1] = append(units[len(units)-1], i)
		default:
			units = append(units, []int{i})
		}
	}
	last := len(units) - 1
	if last < 0 {
		return nil
	}
	isUser := func(unit []int) bool { return messages[unit[0]].Role == "user" }
	if isUser(units[last]) {
		return units[:last]
	}
	units = units[:last]
	for i := len(units) - 1; i >= 0; i-- {
		if isUser(units[i]) {
			return slices.Delete(units, i, i+1)
		}
	}
	return units
}

// without returns a conversation without some messages and their pictures.
func without(c Conversation, list [][]int) Conversation {
	drop := slices.Concat(list...)
	slices.Sort(drop)
	messages, pictures := c.Messages, c.Pictures
	c.Messages, c.Pictures = nil, nil
	for i, m := range messages {
		n := min(pictureParts(m), len(pictures))
		if _, dropped := slices.BinarySearch(drop, i); !dropped {
			c.Messages, c.Pictures = append(c.Messages, m), append(c.Pictures, pictures[:n]...)
		}
		pictures = pictures[n:]
	}
	return c
}
