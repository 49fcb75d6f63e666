package anthropic

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
)

// cacheControl marks a breakpoint: the prompt up to there is pinned in the prefix cache. It is a hint: one that cannot
// be read marks none.
type cacheControl struct {
	ttl time.Duration // 0: no breakpoint
}

// The TTLs of breakpoints.
const (
	shortTTL = 5 * time.Minute
	longTTL  = time.Hour
)

// UnmarshalJSON reads {"type": "ephemeral", "ttl": "5m" or "1h"}. Another TTL is the nearer one.
func (c *cacheControl) UnmarshalJSON(b []byte) error {
	var o struct {
		Type string `json:"type"`
		TTL  string `json:"ttl"`
	}
	*c = cacheControl{}
	if json.Unmarshal(b, &o) != nil || o.Type != "ephemeral" {
		return nil
	}
	c.ttl = shortTTL
	if d, err := time.ParseDuration(o.TTL); err == nil && d > (shortTTL+longTTL)/2 {
		c.ttl = longTTL
	}
	return nil
}

// breakpoint is the place of a cache_control: after a tool, or after a block of the system prompt or of a message.
type breakpoint struct {
	tool, system, message int // index; -1: it is elsewhere
	block                 int // of the message
	ttl                   time.Duration
}

// marked lists the breakpoints of a request in the order of the prompt.
func (q *messagesRequest) marked() (list []breakpoint) {
	add := func(c *cacheControl, b breakpoint) {
		if c != nil && c.ttl > 0 {
			b.ttl = c.ttl
			list = append(list, b)
		}
	}
	for i, t := range q.Tools {
		add(t.CacheControl, breakpoint{tool: i, system: -1, message: -1})
	}
	for i, x := range q.System {
		add(x.CacheControl, breakpoint{tool: -1, system: i, message: -1})
	}
	for i, m := range q.Messages {
		for k, x := range m.Content {
			add(x.CacheControl, breakpoint{tool: -1, system: -1, message: i, block: k})
		}
	}
	if last := len(q.Messages) - 1; last >= 0 {
		add(q.CacheControl, breakpoint{tool: -1, system: -1, message: last, block: len(q.Messages[last].Content) - 1})
	}
	return list
}

// breakpoints are the last breakpoint of a prompt, and the last one that is kept for an hour.
type breakpoints struct {
	prompt int // tokens
	last   runtime.Pin
	hour   runtime.Pin // Tokens is 0 if there is none
}

// breakpoints finds the positions of a request's breakpoints in its prompt.
func (s *api) breakpoints(ctx context.Context, m *server.Model, q *messagesRequest, p *prompt.Prompt, tools offers) (
	breakpoints, error) {
	b := breakpoints{prompt: len(p.IDs)}
	list := q.marked()
	if len(list) == 0 {
		return b, nil
	}
	var err error
	last := list[len(list)-1]
	if b.last, err = s.pin(ctx, m, q, p, tools, last); err != nil {
		return b, err
	}
	for i := len(list) - 1; i >= 0 && b.hour.Tokens == 0; i-- {
		switch {
		case list[i].ttl != longTTL:
		case i == len(list)-1:
			b.hour = b.last
		default:
			if b.hour, err = s.pin(ctx, m, q, p, tools, list[i]); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// pin returns the pin of a breakpoint.
func (s *api) pin(ctx context.Context, m *server.Model, q *messagesRequest, p *prompt.Prompt, tools offers,
	b breakpoint) (runtime.Pin, error) {
	pin := runtime.Pin{Tokens: len(p.IDs), TTL: b.ttl}
	if n := len(q.Messages) - 1; b.message == n && b.block == len(q.Messages[n].Content)-1 {
		return pin, nil
	}
	c, err := q.until(b, m.Style, s.newReader(ctx, m), tools)
	if err != nil {
		return pin, err
	}
	pin.Tokens, err = s.core.Beginning(ctx, m, m.Style, c, p)
	return pin, err
}

// until returns the conversation up to a breakpoint. All of the prompt has the same tools, those of the whole request.
func (q *messagesRequest) until(b breakpoint, style *prompt.Style, r reader, tools offers) (prompt.Conversation,
	error) {
	cut := *q
	cut.newest = new(q.newestOfUser())
	if b.message >= 0 {
		last := q.Messages[b.message]
		last.Content = last.Content[:b.block+1]
		cut.Messages = append(append([]messageParam(nil), q.Messages[:b.message]...), last)
	}
	c, _, err := cut.conversation(style, r)
	c.Continue = false
	if q.ToolChoice.Type != "none" {
		c.Tools = tools.tools()
	}
	if err != nil || b.message >= 0 {
		return c, err
	}
	c.Pictures = nil
	if b.tool >= 0 {
		if c.Messages = nil; c.Tools != nil {
			c.Tools = tools.until(b.tool).tools()
		}
		return c, nil
	}
	system := builder{reader: r, names: map[string]string{}}
	err = system.system(q.System[:b.system+1])
	c.Messages = system.messages
	return c, err
}

// pins returns what the request pins.
func (b breakpoints) pins() (list []runtime.Pin) {
	for _, p := range []runtime.Pin{b.hour, b.last} {
		if p.Tokens > 0 && (len(list) == 0 || p != list[0]) {
			list = append(list, p)
		}
	}
	return list
}

// cacheCreation divides the created tokens by TTL.
type cacheCreation struct {
	Short int `json:"ephemeral_5m_input_tokens"`
	Long  int `json:"ephemeral_1h_input_tokens"`
}

// usage returns token counts. Positions are those of the prompt before its pictures were placed, so they count from the
// end.
func (b breakpoints) usage(s runtime.Stats) messagesUsage {
	created := func(p runtime.Pin) int { return max(p.Tokens+s.PromptTokens-b.prompt-s.CachedTokens, 0) }
	u := messagesUsage{Read: s.CachedTokens, Output: s.Tokens}
	if b.last.Tokens > 0 {
		u.Created = created(b.last)
		u.Creation = &cacheCreation{Short: u.Created}
	}
	if b.hour.Tokens > 0 {
		u.Creation.Long = created(b.hour)
		u.Creation.Short -= u.Creation.Long
	}
	u.Input = s.PromptTokens - u.Read - u.Created
	return u
}
