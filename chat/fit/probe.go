package fit

import (
	"context"
	"errors"
	"strings"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
)

// Render renders the template of a request.
type Render func(context.Context, chat.Request) (string, error)

// Texts of the conversations that are rendered. None is part of another, and no template has them.
const (
	user1, user2, said1, said2, rule1, rule2, result1, result2 = "xqu1z", "xqu2z", "xqa1z", "xqa2z", "xqs1z", "xqs2z",
		"xqr1z", "xqr2z"
	tool1, tool2, key1, value1, value2 = "xqf1z", "xqf2z", "xqk1z", "xqv1z", "xqv2z"
)

// prober renders small conversations.
type prober struct {
	ctx    context.Context
	render Render
	shape  *Shape
	tools  []chat.Tool
	calls  Calls
	slow   int   // renders that exceeded a limit
	err    error // that ends the probing: the context's, or one of memory
}

// mostSlow is the number of renders over a limit after which a template counts as refusing everything.
const mostSlow = 4

// Probe finds out what a template accepts. Nothing is known of one that refuses even a single user turn, for lack of
// other variables: conversations stay as they are. An exception or a limit of the template is a finding; any other
// error of render is returned.
func Probe(ctx context.Context, render Render) (*Shape, error) {
	p := &prober{ctx: ctx, render: render, shape: &Shape{Assistant: chat.Assistant}}
	if !p.turns() {
		return anything(), p.err
	}
	p.systems()
	p.shape.History = p.callShapes()
	p.tools = []chat.Tool{probeTool()}
	p.shape.Offered = p.callShapes()
	p.tools = nil
	p.thinking()
	return p.shape, p.err
}

// turns finds out which user turns and messages of the model are accepted. It reports whether any is.
func (p *prober) turns() bool {
	s := p.shape
	if !p.shows(p.user(user1)) {
		if s.Parts = true; !p.shows(p.user(user1)) {
			return false
		}
	}
	for _, role := range []string{chat.Assistant, "model", "bot", "gpt", "ai"} {
		s.Assistant = role
		if p.shows(p.user(user1), p.said(said1), p.user(user2)) {
			break
		}
		s.Assistant = chat.Assistant
	}
	s.Users = p.shows(p.user(user1), p.user(user2)) &&
		p.shows(p.user(rule1), p.said(said1), p.user(user1), p.user(user2))
	s.Assistants = p.shows(p.user(user1), p.said(said1), p.said(said2), p.user(user2))
	s.EmptyUser = p.shows(p.user(""), p.said(said1), p.user(user1))
	s.NoUser = p.shows(p.said(said1))
	return true
}

// systems finds out where system messages are accepted.
func (p *prober) systems() {
	s := p.shape
	switch {
	case !p.shows(p.system(rule1), p.user(user1)) ||
		!p.shows(p.system(rule1), p.user(user1), p.said(said1), p.user(user2)):
		s.System = Nowhere
		return
	case p.shows(p.system(rule1), p.user(user1), p.said(said1), p.system(rule2), p.user(user2)) &&
		p.shows(p.user(user1), p.system(rule2)) &&
		p.shows(p.user(user1), p.said(said1), p.system(rule2), p.user(user2)):
		s.System = Anywhere
	default:
		s.System = First
	}
	s.SystemOnly = p.shows(p.system(rule1))
	s.SystemLost = !p.shows(p.system(rule1), p.user(user1), p.said(said1))
}

// callShapes finds out how tool calls are accepted.
func (p *prober) callShapes() (c Calls) {
	p.calls = c
	c.Greeting = p.shows(p.said(said1), p.user(user1))
	for _, short := range []bool{false, true} {
		for _, text := range []bool{false, true} {
			for _, null := range []bool{false, true} {
				p.calls = Calls{Greeting: c.Greeting, ShortIDs: short, Text: text, Null: null}
				if p.callShows() {
					p.calls.Shown, p.calls.Results = true, true
					return p.callDetails()
				}
			}
		}
	}
	p.calls = Calls{}
	c.Results = p.shows(p.user(user1), p.said(said1), p.result(1), p.said(said2), p.user(user2))
	c.UserAfter = c.Results && p.shows(p.user(user1), p.said(said1), p.result(1), p.user(user2))
	c.Unnamed = c.Results && p.unnamed()
	return c
}

// callShows reports whether a call and its result are accepted in the form of p.calls.
func (p *prober) callShows() bool {
	marks := []string{user1, tool1, value1, result1}
	waiting := []chat.Message{p.user(user1), p.call(1), p.result(1)}
	text, ok := p.text(waiting, marks...)
	switch {
	case !ok:
		return false
	case strings.Contains(text, `\"`+key1), strings.Contains(text, `&#34;`+key1): // JSON text, quoted once more
		return false
	case strings.Contains(text, "'"+key1+"'"): // an object, printed as Python does
		return false
	case !p.calls.Text && !strings.Contains(text, key1):
		return false
	case strings.Contains(text, "None") && !p.always("None"):
		return false
	}
	more := append(waiting, p.said(said1), p.user(user2))
	_, ok = p.text(more, append(marks, said1, user2)...)
	return ok
}

// always reports whether a word is part of a prompt without calls, too.
func (p *prober) always(word string) bool {
	text, ok := p.text([]chat.Message{p.user(user1)}, user1)
	return ok && strings.Contains(text, word)
}

// callDetails finds out what else is accepted, where a call is.
func (p *prober) callDetails() Calls {
	c := p.calls
	both := p.call(1)
	both.ToolCalls = append(both.ToolCalls, p.call(2).ToolCalls...)
	c.Several = p.showsAll([]string{tool1, tool2, value1, value2, result1, result2},
		p.user(user1), both, p.result(1), p.result(2))
	if !c.Several && !p.showsAll([]string{tool1, tool2, value1, value2, result1, result2},
		p.user(user1), p.call(1), p.result(1), p.call(2), p.result(2)) {
		return Calls{Greeting: c.Greeting, Results: c.Results, Unnamed: p.unnamed()}
	}
	c.First = p.showsAll([]string{tool1, value1, result1, user1}, p.call(1), p.result(1), p.user(user1))
	beside := p.call(1)
	beside.Content, beside.Null = said1, false
	c.Beside = p.showsAll([]string{said1, tool1, value1, result1}, p.user(user1), beside, p.result(1))
	c.UserAfter = p.showsAll([]string{tool1, result1, user2}, p.user(user1), p.call(1), p.result(1), p.user(user2))
	c.Gap = p.showsAll([]string{tool1, result1, user2}, p.user(user1), p.call(1), p.result(1), p.said(""), p.user(user2))
	c.Open = p.showsAll([]string{tool1, value1, user2}, p.user(user1), p.call(1), p.user(user2))
	c.Unnamed = p.unnamed()
	return c
}

// unnamed reports whether results without a call are accepted.
func (p *prober) unnamed() bool {
	return p.shows(p.user(user1), p.result(1)) &&
		p.shows(p.user(user1), p.said(said1), p.result(1), p.user(user2))
}

// shows reports whether a conversation is accepted and its texts show.
func (p *prober) shows(list ...chat.Message) bool {
	var marks []string
	for _, m := range list {
		marks = append(marks, m.Content)
	}
	return p.showsAll(marks, list...)
}

func (p *prober) showsAll(marks []string, list ...chat.Message) bool {
	_, ok := p.text(list, marks...)
	return ok
}

// text renders a conversation. It is not ok if the template refuses it or leaves out one of the marks.
func (p *prober) text(list []chat.Message, marks ...string) (text string, ok bool) {
	text, ok = p.rendered(chat.Request{Messages: list, Tools: p.tools, AddGenerationPrompt: true})
	for _, mark := range marks {
		ok = ok && strings.Contains(text, mark)
	}
	return text, ok
}

func (p *prober) rendered(r chat.Request) (string, bool) {
	if p.err != nil || p.slow >= mostSlow {
		return "", false
	}
	text, err := p.render(p.ctx, r)
	if errors.Is(err, jinja.ErrLimit) {
		p.slow++
	}
	if err != nil && !errors.Is(err, jinja.ErrRender) && !errors.Is(err, jinja.ErrLimit) {
		p.err = err
	}
	return text, err == nil
}

func (p *prober) user(text string) chat.Message   { return p.message(roleUser, text) }
func (p *prober) said(text string) chat.Message   { return p.message(p.shape.Assistant, text) }
func (p *prober) system(text string) chat.Message { return p.message(roleSystem, text) }

func (p *prober) message(role, text string) chat.Message {
	m := chat.Message{Role: role, Content: text}
	if p.shape.Parts {
		m = withParts(m)
	}
	return m
}

// call returns a message with the first or second call, in the form of p.calls.
func (p *prober) call(n int) chat.Message {
	name, value := tool1, value1
	if n == 2 {
		name, value = tool2, value2
	}
	args := jinja.NewDict()
	args.Put(key1, value)
	m := chat.Message{Role: p.shape.Assistant}
	m.ToolCalls = []chat.ToolCall{{ID: callID(n), Name: name, Arguments: args}}
	return p.calls.formed(m)
}

// result returns the result of a call.
func (p *prober) result(n int) chat.Message {
	name, text := tool1, result1
	if n == 2 {
		name, text = tool2, result2
	}
	m := p.message(roleTool, text)
	m.Name, m.ToolCallID = name, callID(n)
	return p.calls.formed(m)
}

func callID(n int) string { return "call_" + strings.Repeat(string(rune('0'+n)), 24) }

// probeTool returns the tool that requests with tools offer.
func probeTool() chat.Tool {
	t, err := chat.NewTool(tool1, "xqd1z",
		[]byte(`{"type":"object","properties":{"`+key1+`":{"type":"string","description":"x"}},"required":["`+key1+`"]}`))
	if err != nil {
		panic(err) // the text above is an object
	}
	return t
}
