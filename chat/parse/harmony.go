package parse

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/parse/calls"
	"github.com/ingotml/ingot/chat/parse/notation"
)

// gpt-oss writes messages, each a header and a body:
//
//	<|channel|>analysis<|message|>...<|end|>
//	<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
//	<|start|>assistant<|channel|>final<|message|>...<|return|>
//
// The prompt has the <|start|>assistant of the first. The recipient may also come before the channel. Bodies of the
// analysis channel are thinking, those with a recipient are calls, and the others are content.
// https://cookbook.openai.com/articles/openai-harmony
const (
	harmonyStart     = "<|start|>"
	harmonyChannel   = "<|channel|>"
	harmonyConstrain = "<|constrain|>"
	harmonyMessage   = "<|message|>"
	harmonyAnalysis  = harmonyChannel + "analysis" + harmonyMessage
	harmonyFinal     = harmonyChannel + "final" + harmonyMessage
	harmonyEnd       = "<|end|>"
	harmonyFunctions = "functions."
)

// harmonyTags are all tags. Those after the first four end a message.
var harmonyTags = []string{
	harmonyStart, harmonyChannel, harmonyConstrain, harmonyMessage, harmonyEnd, "<|return|>", "<|call|>",
}

// maxHeader bounds the bytes of a header.
const maxHeader = 4 << 10

// harmonyChannels are the channels of messages.
var harmonyChannels = []string{"analysis", "commentary", "final"}

// harmonyTypes are the types of bodies, which a header may name.
var harmonyTypes = []string{"json", "code", "text", "python", "xml", "yaml"}

// maxWords bounds the words of a header after the channel.
const maxWords = 4

type harmonyState int

const (
	harmonyHeader harmonyState = iota // a header, or text without one
	harmonyText                       // a body of content or thinking
	harmonyCall                       // a body with a recipient
)

// harmony is the parser of gpt-oss. It processes single bytes, so the events cannot depend on how the text is split.
type harmony struct {
	offer offer
	max   int
	state harmonyState
	says  Kind   // of the body, or of the text if the header is none
	head  []byte // the header with its tags
	tag   string // the last one of the header
	words int    // after that
	word  int    // where the last word begins in head, plus 1; 0: white space
	tool  string // of a call
	body  []byte // of a call
	scan  notation.Prefix
	bad   bool   // the body is not JSON
	end   int    // the first tag inside a string of the body, plus 1; 0: none
	cand  []byte // held back: the beginning of a tag, or a tag behind a quotation mark
	near  place

	backlog
	writer
}

func newHarmony(o Options) Parser {
	h := &harmony{offer: offer{tools: newTools(o.Tools)}, max: o.MaxCall}
	if h.max <= 0 {
		h.max = defaultMaxCall
	}
	if o.Thinking {
		h.state, h.says = harmonyText, Thinking
	}
	return h
}

// Feed implements [Parser].
func (h *harmony) Feed(text string) []Event {
	h.feed(text, h.byte)
	return h.take()
}

// Close implements [Parser].
func (h *harmony) Close() ([]Event, error) {
	for h.endTag(); h.state == harmonyCall; h.endTag() {
		h.endCall(false)
		h.each(h.byte)
	}
	if h.state == harmonyHeader && h.isText() {
		h.noHeader()
	}
	h.flush(true)
	return h.take(), h.err
}

// endTag decides about a tag that the end of the text leaves open.
func (h *harmony) endTag() {
	for len(h.cand) > 0 {
		if tag := h.whole(); tag != "" {
			h.onTag(tag)
		} else {
			h.reject()
		}
		h.each(h.byte)
	}
}

// whole returns the tag that is held back, "" if it is only a beginning, and no longer holds it back.
func (h *harmony) whole() string {
	for _, tag := range harmonyTags {
		if tag == string(h.cand) {
			h.cand = nil
			return tag
		}
	}
	return ""
}

func (h *harmony) byte(b byte) {
	if len(h.cand) > 0 {
		switch tag := h.whole(); { // behind a quotation mark
		case tag == "":
		case b == h.near.before[1]:
			h.literal(tag)
		default:
			h.onTag(tag)
		}
	}
	if len(h.cand) == 0 && b != '<' {
		h.plain(b)
		return
	}
	h.cand = append(h.cand, b)
	more := false
	for _, tag := range harmonyTags {
		if tag == string(h.cand) {
			if h.state != harmonyText || !h.near.quoted() {
				h.onTag(h.whole())
			}
			return
		}
		more = more || strings.HasPrefix(tag, string(h.cand))
	}
	if !more {
		h.reject()
	}
}

// reject treats the first byte of cand as text. The remaining bytes may still begin a tag.
func (h *harmony) reject() {
	b, rest := h.cand[0], h.cand[1:]
	h.cand = nil
	h.todo = append(h.todo, rest)
	h.plain(b)
}

// onTag processes a tag.
func (h *harmony) onTag(tag string) {
	begins, within := tag == harmonyStart || tag == harmonyChannel, tag == harmonyMessage || tag == harmonyConstrain
	switch h.state {
	case harmonyText:
		switch {
		case begins: // the end tag is missing, or it is text
			h.begin(h.says, tag)
		case within:
			h.literal(tag)
		default:
			h.begin(Content, "")
		}
	case harmonyCall:
		quoted := !h.bad && h.scan.InString()
		if quoted && h.end == 0 {
			h.end = len(h.body) + 1
		}
		if quoted || within {
			h.literal(tag)
			return
		}
		if h.endCall(true); begins {
			h.begin(Content, tag)
		}
	default:
		switch {
		case tag == harmonyMessage:
			h.beginBody()
		case tag == harmonyChannel || within:
			h.head, h.tag, h.words, h.word = append(h.head, tag...), tag, 0, 0
		case h.isText():
			h.noHeader()
			h.onTag(tag)
		case begins:
			h.begin(h.says, tag)
		default:
			h.begin(Content, "")
		}
	}
}

// begin begins a header after a tag, which is text of this kind if no header follows; "" after the end of a message.
func (h *harmony) begin(says Kind, tag string) {
	h.state, h.says, h.head, h.tag, h.words, h.word = harmonyHeader, says, []byte(tag), tag, 0, 0
}

// plain processes a byte of text.
func (h *harmony) plain(b byte) {
	if h.state != harmonyHeader {
		h.literal(string([]byte{b}))
		return
	}
	h.head = append(h.head, b)
	ok := true
	switch {
	case !isSpace(b):
		if h.word == 0 {
			h.word = len(h.head)
			h.words++
		}
		ok = h.fits(string(h.head[h.word-1:]), false)
	case h.word > 0:
		ok = h.fits(string(h.head[h.word-1:len(h.head)-1]), true)
		h.word = 0
	}
	if !ok || len(h.head) > maxHeader {
		h.noHeader()
	}
}

// fits reports whether a word can be in the header at this place. Unless whole, more of the word may follow.
func (h *harmony) fits(word string, whole bool) bool {
	is := func(s string) bool { return s == word || !whole && strings.HasPrefix(s, word) }
	to, addressed := strings.CutPrefix(word, "to=")
	addressed = is("to=") || addressed && len(to) <= calls.MaxName
	typed := slices.ContainsFunc(harmonyTypes, is)
	switch {
	case h.tag == harmonyChannel && h.words == 1:
		return slices.ContainsFunc(harmonyChannels, is)
	case h.tag == harmonyChannel:
		return h.words <= maxWords && (addressed || typed)
	case h.tag == harmonyConstrain:
		return h.words == 1 && typed
	}
	return h.words == 1 && is("assistant") || h.words <= 2 && addressed
}

// isText reports whether a header without a body is text: words without a tag, or the beginning of a call.
func (h *harmony) isText() bool {
	_, recipient := readHeader(string(h.head))
	return recipient != "" || h.tag == "" && !blank(h.head)
}

// noHeader takes what seemed to be a header for text.
func (h *harmony) noHeader() {
	if h.state = harmonyText; h.tag == "" {
		h.part(h.says, nil)
	}
	text := string(h.head)
	h.head = nil
	h.literal(text)
}

// literal adds text to a body.
func (h *harmony) literal(text string) {
	if h.state == harmonyText {
		for i := range len(text) {
			h.near.add(text[i])
		}
		h.put(h.says, []byte(text))
		return
	}
	for i := range len(text) {
		h.body = append(h.body, text[i])
		if h.bad = h.bad || !h.scan.Add(text[i]); h.bad && h.end > 0 {
			h.endCall(true)
			h.repeat([]byte(text[i+1:]))
			return
		}
	}
	if len(h.body) >= h.max && partialRune(h.body) == 0 {
		h.broken(fmt.Errorf("%w: longer than %d bytes", ErrCall, h.max))
		h.state = harmonyText
	}
}

// beginBody begins the body that follows the header.
func (h *harmony) beginBody() {
	channel, recipient := readHeader(string(h.head))
	h.near, h.says = place{}, Content
	if channel == harmonyChannels[0] {
		h.says = Thinking
	}
	switch {
	case recipient != "" && len(h.offer.tools) > 0:
		h.state, h.tool, h.body, h.scan, h.bad, h.end = harmonyCall, strings.TrimPrefix(recipient, harmonyFunctions), nil,
			notation.Prefix{}, false, 0
		return
	case recipient != "": // no call is expected: all of it is text
		h.head = append(h.head, harmonyMessage...)
		h.tag = ""
		h.noHeader()
	default:
		h.state, h.head = harmonyText, nil
		h.part(h.says, nil)
	}
}

// readHeader returns the channel and the recipient of a message.
func readHeader(head string) (channel, recipient string) {
	if _, after, ok := strings.Cut(head, harmonyChannel); ok {
		channel = word(after)
	}
	for rest := head; recipient == ""; {
		before, after, ok := strings.Cut(rest, "to=")
		if !ok {
			break
		}
		if before == "" || strings.ContainsAny(before[len(before)-1:], spaces+">") {
			recipient = word(after)
		}
		rest = after
	}
	return channel, recipient
}

// word returns the text before the first space or tag.
func word(text string) string {
	if at := strings.IndexAny(text, spaces+"<"); at >= 0 {
		return text[:at]
	}
	return text
}

// endCall emits a call. complete is false if the text ended inside it. If a string of it is not closed, it ends at the
// first tag inside.
func (h *harmony) endCall(complete bool) {
	if h.end > 0 && (h.bad || !complete) {
		h.repeat(h.body[h.end-1:])
		h.body, complete = h.body[:h.end-1], true
	}
	text := strings.Trim(string(h.body), spaces)
	args, err := arguments(json.RawMessage(text))
	switch {
	case err == nil && (complete || text != ""):
		h.writer.call([]ToolCall{{Name: h.tool, Arguments: args}})
		h.part(Content, nil)
		h.part(Thinking, nil)
	case complete:
		h.broken(fmt.Errorf("%w: %w", ErrCall, err))
	default:
		h.broken(fmt.Errorf("%w: the text ends inside the call", ErrIncomplete))
	}
	h.begin(Content, "")
}

// broken emits the header and the body of a call as text.
func (h *harmony) broken(err error) {
	h.part(Content, nil)
	h.damaged(string(h.head)+harmonyMessage+string(h.body), err)
	h.says, h.head, h.body = Content, nil, nil
}

// harmonySyntax is the syntax of calls, which end the response, and of the messages before them and before the final
// one. The tags are tokens.
var harmonySyntax = calls.Syntax{
	Head: `before <|channel|> "commentary to=functions."`,
	Call: func(o calls.Offer) (string, error) {
		args, err := o.Arguments()
		return calls.Seq(calls.Literal(o.Name+" "), `<|constrain|> "json" <|message|>`, args), err
	},
}

// harmonyRules are the rules of messages before a call, and before the final message: no content.
const harmonyRules = `words ::= [\x00-\U0010FFFF]*
next ::= <|message|> words <|end|> <|start|> "assistant"
before ::= (<|channel|> ("analysis" | "commentary") next)*
final ::= (<|channel|> "analysis" next)* <|channel|> "final" <|message|>
`
