package parse

import (
	"encoding/json"
	"fmt"
	"strings"
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

type harmonyState int

const (
	harmonyFirst  harmonyState = iota // the first header, or text without one
	harmonyHeader                     // a header
	harmonyText                       // a body of content or thinking
	harmonyCall                       // a body with a recipient
)

// harmony is the parser of gpt-oss. It processes single bytes, so the events cannot depend on how the text is split.
type harmony struct {
	max   int
	state harmonyState
	head  []byte // the header with its tags
	tool  string // of a call
	body  []byte // of a call
	cand  []byte // held back: the beginning of a tag

	text []byte // of the current event
	kind Kind
	out  []Event
	err  error // the first error
}

func newHarmony(o Options) Parser {
	h := &harmony{max: o.MaxCall}
	if h.max <= 0 {
		h.max = defaultMaxCall
	}
	if o.Thinking {
		h.state, h.kind = harmonyText, Thinking
	}
	return h
}

// Feed implements [Parser].
func (h *harmony) Feed(text string) []Event {
	for i := range len(text) {
		h.byte(text[i])
	}
	h.flush(false)
	return h.take()
}

// Close implements [Parser].
func (h *harmony) Close() ([]Event, error) {
	for _, b := range h.cand {
		h.plain(b)
	}
	h.cand = nil
	switch head := string(h.head); {
	case h.state == harmonyCall:
		h.endCall(false)
	case (h.state == harmonyFirst || h.state == harmonyHeader) && !strings.Contains(head, "<|"):
		h.open(Content) // no header but text
		h.text = append(h.text, head...)
	}
	h.flush(true)
	return h.take(), h.err
}

func (h *harmony) take() []Event {
	out := h.out
	h.out = nil
	return out
}

func (h *harmony) byte(b byte) {
	if len(h.cand) == 0 && b != '<' {
		h.plain(b)
		return
	}
	h.cand = append(h.cand, b)
	for len(h.cand) > 0 {
		more := false
		for i, tag := range harmonyTags {
			if tag == string(h.cand) {
				h.cand = h.cand[:0]
				h.tag(i)
				return
			}
			more = more || strings.HasPrefix(tag, string(h.cand))
		}
		if more {
			return
		}
		h.plain(h.cand[0])
		h.cand = h.cand[1:]
	}
	h.cand = nil
}

// tag processes a tag by its index in harmonyTags.
func (h *harmony) tag(i int) {
	text := harmonyTags[i]
	inBody := h.state == harmonyText || h.state == harmonyCall
	switch {
	case text == harmonyMessage && !inBody:
		h.begin()
	case (text == harmonyMessage || text == harmonyConstrain) && inBody: // not a place for it: text
		for i := range len(text) {
			h.plain(text[i])
		}
	case text == harmonyChannel && inBody: // the end tag is missing
		h.end()
		h.head = append(h.head, text...)
	case text == harmonyChannel || text == harmonyConstrain:
		h.state = harmonyHeader
		h.head = append(h.head, text...)
	default: // a start or an end
		h.end()
		if text == harmonyStart {
			h.head = append(h.head, text...)
		}
	}
}

// plain processes a byte of text.
func (h *harmony) plain(b byte) {
	switch h.state {
	case harmonyText:
		h.text = append(h.text, b)
	case harmonyCall:
		if h.body = append(h.body, b); len(h.body) >= h.max && partialRune(h.body) == 0 {
			h.damaged(fmt.Errorf("%w: longer than %d bytes", ErrCall, h.max))
			h.open(Content)
		}
	default:
		h.head = append(h.head, b)
		if h.state == harmonyFirst && !mayBeHeader(string(h.head)) || len(h.head) >= maxHeader {
			h.open(Content)
			h.text = append(h.text, h.head...)
			h.head = nil
		}
	}
}

// mayBeHeader reports whether the first text of a response, which has no tag yet, may be the beginning of a header.
func mayBeHeader(text string) bool {
	text = strings.TrimLeft(text, spaces)
	for _, word := range []string{"assistant", "to="} {
		if strings.HasPrefix(word, text) || strings.HasPrefix(text, word) {
			return true
		}
	}
	return false
}

// open begins a body of content or thinking.
func (h *harmony) open(k Kind) {
	if k != h.kind {
		h.flush(true)
		h.kind = k
	}
	h.state = harmonyText
}

// begin begins the body that follows the header.
func (h *harmony) begin() {
	channel, recipient := readHeader(string(h.head))
	switch {
	case recipient != "":
		h.flush(true)
		h.state, h.tool, h.body = harmonyCall, strings.TrimPrefix(recipient, harmonyFunctions), nil
	case channel == "analysis":
		h.open(Thinking)
		h.head = nil
	default:
		h.open(Content)
		h.head = nil
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

// end ends a message, or drops a header without a body.
func (h *harmony) end() {
	if h.state == harmonyCall {
		h.endCall(true)
	}
	h.state, h.head = harmonyHeader, nil
}

// endCall emits a call. complete is false if the text ended inside it.
func (h *harmony) endCall(complete bool) {
	text := strings.Trim(string(h.body), spaces)
	args, err := arguments(json.RawMessage(text))
	switch {
	case err == nil && (complete || text != ""):
		h.out = append(h.out, Event{Kind: Call, Call: ToolCall{Name: h.tool, Arguments: args}})
		h.head, h.body = nil, nil
	case complete:
		h.damaged(fmt.Errorf("%w: %w", ErrCall, err))
	default:
		h.damaged(fmt.Errorf("%w: the text ends inside the call", ErrIncomplete))
	}
}

// damaged emits the header and the body of a call as text.
func (h *harmony) damaged(err error) {
	if h.err == nil {
		h.err = err
	}
	h.out = append(h.out, Event{Kind: Damaged, Text: string(h.head) + harmonyMessage + string(h.body), Err: err})
	h.head, h.body = nil, nil
}

// flush emits the collected text. An incomplete character at its end stays, unless all is set.
func (h *harmony) flush(all bool) {
	n := len(h.text)
	if !all {
		n -= partialRune(h.text)
	}
	if n > 0 {
		h.out = append(h.out, Event{Kind: h.kind, Text: string(h.text[:n])})
		h.text = append(h.text[:0], h.text[n:]...)
	}
}

// harmonySyntax is the syntax of calls, which end the response, and of what comes before them and before an answer. The
// tags are tokens.
var harmonySyntax = callSyntax{
	head: `before <|channel|> "commentary to=functions."`,
	call: func(o Offer) (string, error) {
		args, err := o.arguments()
		return seq(literal(o.Name+" "), `<|constrain|> "json" <|message|>`, args), err
	},
}

// harmonyRules are the rules of messages before a call, and of what comes before an answer: no content.
const harmonyRules = `words ::= [\x00-\U0010FFFF]*
next ::= <|message|> words <|end|> <|start|> "assistant"
before ::= (<|channel|> ("analysis" | "commentary") next)*
final ::= (<|channel|> "analysis" next)* <|channel|> "final" <|message|>
`
