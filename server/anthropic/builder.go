package anthropic

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/pdf"
	"github.com/ingotml/ingot/server/wire"
)

// builder converts turns to messages of a template.
type builder struct {
	reader
	messages []chat.Message
	pictures []runtime.Picture
	names    map[string]string // names of called tools, by call id
	tools    map[string]bool   // the request's tools, by name
	changes  []toolChange      // of the tools that are offered, in order
}

// billing starts a block that Claude Code adds to the system prompt. It differs in each request, so no prompt would hit
// the prefix cache.
const billing = "x-anthropic-billing-header:"

func (b *builder) system(list []contentBlock) error {
	content := &contents{}
	for i, s := range list {
		if errors.Is(s.broken, errNoObject) {
			return wire.BadParam(fmt.Sprintf("system.%d", i), "%v", s.broken)
		}
		if s.Type == textBlock && (strings.HasPrefix(s.Text, billing) || s.Text == "") {
			continue
		}
		if err := b.content(content, placed{s, place{at: fmt.Sprintf("system.%d", i)}}); err != nil {
			return err
		}
	}
	if !content.empty() {
		b.messages = append(b.messages, content.message(chat.Message{Role: "system", At: "system"}))
	}
	return nil
}

// turn adds the messages of a turn.
func (b *builder) turn(t turn) error {
	switch t.role {
	case chat.Assistant:
		return b.assistant(t)
	case "user", "system":
		return b.user(t)
	}
	return wire.BadParam(t.at+".role", "%q is not user, assistant or system", wire.Clip(t.role))
}

// assistant adds a message of the model.
func (b *builder) assistant(t turn) error {
	content := &contents{}
	var thought strings.Builder
	var calls []chat.ToolCall
	for _, x := range t.blocks {
		switch {
		case x.broken == nil && x.Type == thinkingBlock:
			addText(&thought, x.Thinking)
		case x.broken == nil && x.Type == toolUseBlock && x.Name != "":
			calls = append(calls, b.call(x.contentBlock))
		default:
			if err := b.content(content, x); err != nil {
				return err
			}
		}
	}
	m := content.message(chat.Message{Role: chat.Assistant, At: t.at, ToolCalls: calls, Reasoning: thought.String()})
	b.messages = append(b.messages, m)
	return nil
}

// call converts a call. Package fit repairs an input that is not an object.
func (b *builder) call(x contentBlock) chat.ToolCall {
	b.names[x.ID] = x.Name
	if len(x.Input) == 0 {
		return chat.NewCall(x.ID, x.Name, nil)
	}
	input, err := jinja.DecodeJSON(x.Input)
	if err != nil {
		input = string(x.Input)
	}
	if d, ok := input.(*jinja.Dict); ok && x.Toolset != "" {
		b.names[x.ID] = x.Toolset
		return chat.NewCall(x.ID, x.Toolset, withAction(x.Name, d))
	}
	return chat.NewCall(x.ID, x.Name, input)
}

// user adds a message of the user or of the system, and tool results, in order. Each result becomes a message.
func (b *builder) user(t turn) error {
	content := &contents{}
	flush := func() {
		if !content.empty() {
			b.messages = append(b.messages, content.message(chat.Message{Role: t.role, At: t.at}))
		}
		content = &contents{}
	}
	if len(t.blocks) == 0 {
		content.text("")
	}
	for _, x := range t.blocks {
		if x.Type != toolResultBlock || x.broken != nil {
			if err := b.content(content, x); err != nil {
				return err
			}
			continue
		}
		flush()
		if err := b.result(x); err != nil {
			return err
		}
	}
	flush()
	return nil
}

// result adds a tool's result. One without a call is shown, too.
func (b *builder) result(x placed) error {
	var content contents
	for i, y := range blocksOf(x.Content) {
		if err := b.content(&content, placed{y, x.within(i, false)}); err != nil {
			return err
		}
	}
	if x.IsError {
		content.mark()
	}
	b.messages = append(b.messages, content.message(chat.Message{Role: "tool", ToolCallID: x.ToolUseID,
		Name: b.names[x.ToolUseID], At: x.at}))
	return nil
}

// trouble is a reason why a block cannot be shown.
type trouble struct {
	field string // of the block, or ""
	what  string // is not shown
	why   error
}

// omit adds a note in place of a block. If the user has just written the block, it is an error.
func (b *builder) omit(to *contents, p place, t trouble) error {
	if !p.own {
		to.text(server.Omitted(t.what, t.why.Error()))
		return nil
	}
	at := p.at
	if t.field != "" {
		at += "." + t.field
	}
	return wire.BadParam(at, "%v", t.why)
}

// content adds a block that is neither a call nor a result of one.
func (b *builder) content(to *contents, x placed) error {
	if x.broken != nil {
		return b.omit(to, x.place, trouble{"", strings.TrimSpace(wire.Clip(x.Type) + " block"), x.broken})
	}
	switch x.Type {
	case textBlock:
		to.text(x.Text)
	case imageBlock:
		return b.image(to, x)
	case documentBlock:
		return b.document(to, x)
	case thinkingBlock, redactedBlock, fallbackBlock, mcpListingBlock:
		// shown to no model
	case additionBlock, removalBlock:
		b.change(x)
	case referenceBlock:
		return b.reference(to, x)
	case compactionBlock:
		b.compacted(to, x)
	default:
		return b.other(to, x)
	}
	return nil
}

// image adds a picture.
func (b *builder) image(to *contents, x placed) error {
	note, err := b.note(x.own)
	if err != nil {
		return wire.BadParam(x.at, "%v", err)
	}
	if note != "" {
		to.text(note)
		return nil
	}
	refuse := func(why error) error { return b.omit(to, x.place, trouble{"source", "image", why}) }
	data := ""
	switch s := x.Source; {
	case s == nil:
		return refuse(errors.New("the source is missing"))
	case s.Type == "base64":
		data = s.Data
	case s.Type == "url" && strings.HasPrefix(s.URL, "data:"):
		data = s.URL
	case s.Type == "url":
		return refuse(errors.New("the server does not fetch images: send the type base64"))
	case s.Type == "file":
		return refuse(errors.New("the server stores no files: send the type base64"))
	default:
		return refuse(fmt.Errorf("the type %q is not base64", wire.Clip(s.Type)))
	}
	if len(b.pictures) >= limits.Pictures {
		return wire.BadParam(x.at+".source", "too many pictures: a request may have at most %d", limits.Pictures)
	}
	p, err := server.DecodePicture(data, len(b.pictures))
	if err == nil {
		err = b.check(p)
	}
	if err != nil {
		return refuse(err)
	}
	b.pictures = append(b.pictures, p)
	to.picture()
	return nil
}

// document adds a document's title, context and content.
func (b *builder) document(to *contents, x placed) error {
	refuse := func(why error) error { return b.omit(to, x.place, trouble{"source", "document", why}) }
	if x.Title != "" {
		to.text("Document: " + x.Title)
	}
	if x.Context != "" {
		to.text("Context: " + x.Context)
	}
	s := x.Source
	if s == nil {
		return refuse(errors.New("the source is missing"))
	}
	switch s.Type {
	case "text":
		to.text(s.Data)
	case "content":
		if x.depth >= maxDepth {
			return refuse(errors.New("is nested too deep"))
		}
		inner := place{x.at + ".source", x.own, x.depth}
		for i, y := range blocksOf(s.Content) {
			if err := b.content(to, placed{y, inner.within(i, true)}); err != nil {
				return err
			}
		}
	case "base64":
		return b.file(to, x, refuse)
	case "url":
		return refuse(errors.New("the server does not fetch documents: send the type base64"))
	case "file":
		return refuse(errors.New("the server stores no files: send the type base64"))
	default:
		return refuse(fmt.Errorf("the type %q is not text, base64 or content", wire.Clip(s.Type)))
	}
	return nil
}

// maxDepth bounds blocks within blocks whose content is shown.
const maxDepth = 8

// file adds the text of a file: of a PDF, or of a file of text. A PDF without text becomes a note, so that the model
// can say so.
func (b *builder) file(to *contents, x placed, refuse func(error) error) error {
	data, err := base64.StdEncoding.DecodeString(x.Source.Data)
	if err != nil {
		return refuse(errors.New("the data are not valid base64"))
	}
	isPDF := strings.Contains(x.Source.MediaType, "pdf") || x.Source.MediaType == ""
	if !isPDF && utf8.Valid(data) {
		to.text(string(data))
		return nil
	}
	if !isPDF {
		return refuse(fmt.Errorf("%q is neither PDF nor text: convert it to one of them", wire.Clip(x.Source.MediaType)))
	}
	text, err := b.pdf(data)
	switch {
	case err == nil:
		to.text(text)
	case fails(err):
		return err
	case errors.Is(err, pdf.ErrNoPDF):
		return refuse(err)
	default:
		to.text(server.Omitted("PDF", err.Error()))
	}
	return nil
}

// contents collects texts and pictures in order.
type contents struct {
	parts    []chat.Part
	last     strings.Builder // text since the last part; each block starts on a new line
	texts    int             // number of blocks in last
	pictures int
}

func (c *contents) empty() bool { return len(c.parts) == 0 && c.texts == 0 }

func (c *contents) text(text string) {
	addText(&c.last, text)
	c.texts++
}

// line adds text in a format, unless it is empty.
func (c *contents) line(format, text string) {
	if text != "" {
		c.text(fmt.Sprintf(format, text))
	}
}

// add adds the texts and pictures of another content.
func (c *contents) add(more contents) {
	more.flush()
	for _, p := range more.parts {
		if p.Type == "image" {
			c.picture()
		} else {
			c.text(p.Text)
		}
	}
}

func (c *contents) picture() {
	c.flush()
	c.parts = append(c.parts, chat.Part{Type: "image"})
	c.pictures++
}

func (c *contents) flush() {
	if c.texts > 0 {
		c.parts = append(c.parts, chat.Part{Type: "text", Text: c.last.String()})
		c.last.Reset()
		c.texts = 0
	}
}

// mark says that the content is an error, unless its beginning does.
func (c *contents) mark() {
	c.flush()
	if len(c.parts) == 0 || len(c.parts) == 1 && c.parts[0].Text == "" && c.pictures == 0 {
		c.parts = []chat.Part{{Type: "text", Text: "error"}}
		return
	}
	const beginning = 100
	first := c.parts[0].Text
	if !strings.Contains(strings.ToLower(first[:min(len(first), beginning)]), "error") {
		c.parts = append([]chat.Part{{Type: "text", Text: "Error:\n"}}, c.parts...)
	}
}

// message adds the content to a message. It uses parts only if there are pictures, since not every template supports
// parts.
func (c *contents) message(m chat.Message) chat.Message {
	c.flush()
	var text strings.Builder
	for _, p := range c.parts {
		text.WriteString(p.Text)
	}
	m.Content = text.String()
	if c.pictures > 0 {
		m.Parts = c.parts
	}
	return m
}
