package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/items"
	"github.com/ingotml/ingot/server/openai/stored"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/wire"
)

// exchange is what a request of the responses API says to a model.
type exchange struct {
	owner        string
	model        *server.Model
	own, all     []items.Item // of the request itself, and with those that it continues
	tools        *tools.Set
	conversation prompt.Conversation // without tools
	compacts     bool                // the request asks for a summary instead of an answer
}

// exchange reads the conversation of a request: the items of stored responses that it continues, and its own.
func (s *api) exchange(ctx context.Context, owner string, q *responseInput) (*exchange, error) {
	e := &exchange{owner: owner}
	var err error
	if e.model, err = s.core.Find(ctx, q.Model); err != nil {
		return nil, err
	}
	if q.Previous != "" {
		if e.all, err = s.earlier(ctx, owner, q.Previous); err != nil {
			return nil, err
		}
	}
	referred := 0
	find := func(id string) (json.RawMessage, bool, error) {
		raw, ok := s.stored.Item(owner, id)
		if referred += len(raw); referred > limits.StoredSize { // one that is referred to often
			return nil, ok, wire.BadParam("input", "the items that it refers to have more than %d bytes", limits.StoredSize)
		}
		return raw, ok, wire.TakeJSON(ctx, raw)
	}
	if e.own, err = q.Input.Decode(find); err != nil {
		return nil, err
	}
	e.own, e.compacts = items.Compacts(e.own)
	e.all = append(e.all, e.own...)
	if e.tools, err = tools.ReadResponses(ctx, tools.List(q.Tools), items.Added(e.all)...); err != nil {
		return nil, err
	}
	said, err := items.Read(e.all, e.tools)
	if err != nil {
		return nil, err
	}
	switch {
	case len(said.Messages) > 0:
	case len(e.all) > 0:
		return nil, wire.BadParam("input", "none of the items says anything to the model")
	default:
		return nil, wire.BadParam("input", "missing or empty")
	}
	if q.Instructions != nil && *q.Instructions != "" {
		said.Messages = append([]chat.Message{{Role: "system", Content: *q.Instructions}}, said.Messages...)
		said.At = append([]string{"instructions"}, said.At...)
	}
	name := func(i int) string { return said.At[i] }
	e.conversation, err = turns(said.Messages, e.model.Style, name, s.viewer(ctx, e.model))
	return e, err
}

const (
	previousField = "previous_response_id"
	storeRemedy   = `send the whole conversation, or let the server store responses with "store": true`
)

// earlier returns the items of a stored response and of those that it continues.
func (s *api) earlier(ctx context.Context, owner, id string) ([]items.Item, error) {
	list, err := s.stored.Conversation(owner, id, true)
	if errors.Is(err, stored.ErrUnknown) {
		return nil, wire.BadParam(previousField, "%w: %s", err, storeRemedy)
	}
	if err != nil {
		return nil, wire.BadParam(previousField, "%v", err)
	}
	var out []items.Item
	for i, it := range list {
		if err := wire.TakeJSON(ctx, it.Raw); err != nil {
			return nil, err
		}
		one, err := items.Decode(it.Raw, fmt.Sprintf("%s: item %d", previousField, i))
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// truncationAuto is the value of truncation that drops the oldest items instead of refusing a long conversation.
const truncationAuto = "auto"

// prompt builds a prompt. With trim, the oldest messages are left out of one that is too long, so that there is room
// for a response of most tokens, or if that is nil, for an eighth of the context.
func (s *api) prompt(ctx context.Context, m *server.Model, c prompt.Conversation, trim bool, most *int) (*prompt.Prompt,
	error) {
	build := func(c prompt.Conversation) (*prompt.Prompt, error) { return s.core.MakePrompt(ctx, m, m.Style, c) }
	if !trim {
		return build(c)
	}
	context := s.core.Context(m)
	room := context / 8
	if most != nil {
		room = min(max(*most, 1), context/2)
	}
	first := true
	return prompt.Shorten(ctx, c, build, func(p *prompt.Prompt) (bool, error) {
		n, err := m.CountPrompt(ctx, p.IDs, p.Pictures)
		if first { // nothing is left out of a conversation that fits
			first = false
			return n < context, err
		}
		return n+room <= context, err
	})
}
