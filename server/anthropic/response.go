package anthropic

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
)

// messageJSON is a response. Without content and stop reason, it is the first message of a stream.
type messageJSON struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Role         string        `json:"role"`
	Model        string        `json:"model"`
	Content      []blockJSON   `json:"content"`
	StopReason   *string       `json:"stop_reason"`
	StopSequence *string       `json:"stop_sequence"`
	Usage        messagesUsage `json:"usage"`
	LeftOut      []string      `json:"left_out,omitempty"` // an extension: what best_effort did not enforce
}

// blockJSON is a block of a response. Each type uses some of the fields.
type blockJSON struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Toolset   string          `json:"toolset_name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// signature is the signature of thinking blocks. Nothing is signed, and signatures in requests are not checked.
const signature = "ingot"

// messagesUsage are token counts. Input excludes the prompt tokens found in the prefix cache, and those that were
// stored up to the last breakpoint.
type messagesUsage struct {
	Input   int `json:"input_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Output  int `json:"output_tokens"`

	Creation *cacheCreation `json:"cache_creation,omitempty"` // Created by the TTL of breakpoints

	Details *outputDetails `json:"output_tokens_details,omitempty"` // only in the final usage
}

type outputDetails struct {
	Thinking int `json:"thinking_tokens"`
}

// deltaJSON is an increment of a block.
type deltaJSON struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`
	Thinking  *string `json:"thinking,omitempty"`
	Signature *string `json:"signature,omitempty"`
	Partial   *string `json:"partial_json,omitempty"`
}

// endDelta says why a response ended.
type endDelta struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// Stop reasons.
const (
	stopEnd      = "end_turn"
	stopLength   = "max_tokens"
	stopContext  = "model_context_window_exceeded"
	stopSequence = "stop_sequence"
	stopTool     = "tool_use"
)

// stopReason returns why a response ended. A match of the model's own stop texts counts as the end of the turn.
func (q *messagesRequest) stopReason(o server.Outcome) (d endDelta) {
	reason := stopEnd
	switch {
	case o.Done == runtime.DoneLength && o.Stats.Tokens < *q.MaxTokens:
		reason = stopContext
	case o.Done == runtime.DoneLength:
		reason = stopLength
	case o.Calls > 0:
		reason = stopTool
	default:
		for _, s := range q.StopSequences {
			if s == o.Stop && s != "" {
				reason, d.StopSequence = stopSequence, &s
			}
		}
	}
	d.StopReason = &reason
	return d
}

// blocks builds the content blocks of a response, one at a time. White space between blocks of other types does not
// make a block.
type blocks struct {
	stream *messageStream         // nil: the response is not streamed
	family func(tool string) bool // whether a tool is a toolset; nil: none is
	list   []blockJSON            // started so far; content is not kept if it is streamed
	open   string                 // type of the last block if it is not complete; "": none
	text   strings.Builder
	held   strings.Builder // white space that becomes part of a block only if text follows
}

// add appends text to the open block if it has this type, or else starts a block.
func (b *blocks) add(kind, text string) error {
	if b.open != kind {
		b.held.WriteString(text)
		if strings.TrimFunc(text, unicode.IsSpace) == "" {
			return nil
		}
		text = b.held.String()
		if err := b.begin(kind, blockJSON{Type: kind}); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	b.text.WriteString(text)
	return b.delta(kind, text)
}

// begin completes the open block and starts another one.
func (b *blocks) begin(kind string, block blockJSON) error {
	if err := b.end(); err != nil {
		return err
	}
	switch empty := ""; kind {
	case textBlock:
		block.Text = &empty
	case thinkingBlock:
		block.Thinking, block.Signature = &empty, &empty
	}
	b.open, b.list = kind, append(b.list, block)
	b.held.Reset()
	b.text.Reset()
	return b.send("content_block_start", func(at int) any {
		return struct {
			Type  string    `json:"type"`
			Index int       `json:"index"`
			Block blockJSON `json:"content_block"`
		}{"content_block_start", at, block}
	})
}

func (b *blocks) delta(kind, text string) error {
	switch kind {
	case textBlock:
		return b.change(deltaJSON{Type: "text_delta", Text: &text})
	case thinkingBlock:
		return b.change(deltaJSON{Type: "thinking_delta", Thinking: &text})
	}
	return b.change(deltaJSON{Type: "input_json_delta", Partial: &text})
}

func (b *blocks) change(d deltaJSON) error {
	return b.send("content_block_delta", func(at int) any {
		return struct {
			Type  string    `json:"type"`
			Index int       `json:"index"`
			Delta deltaJSON `json:"delta"`
		}{"content_block_delta", at, d}
	})
}

// end completes the open block, if any.
func (b *blocks) end() error {
	if b.open == "" {
		return nil
	}
	kind, last := b.open, &b.list[len(b.list)-1]
	b.open = ""
	switch text := b.text.String(); {
	case b.stream != nil:
	case kind == textBlock:
		last.Text = &text
	case kind == thinkingBlock:
		s := signature
		last.Thinking, last.Signature = &text, &s
	}
	if kind == thinkingBlock {
		s := signature
		if err := b.change(deltaJSON{Type: "signature_delta", Signature: &s}); err != nil {
			return err
		}
	}
	return b.send("content_block_stop", func(at int) any {
		return struct {
			Type  string `json:"type"`
			Index int    `json:"index"`
		}{"content_block_stop", at}
	})
}

// call adds a complete tool call.
func (b *blocks) call(c parse.ToolCall) error {
	block := blockJSON{Type: toolUseBlock, ID: server.CallID(c), Name: c.Name, Input: c.Arguments}
	if b.family != nil && b.family(c.Name) {
		block.Toolset = c.Name
		block.Name, c.Arguments = memberCall(c)
		block.Input = c.Arguments
	}
	if b.stream != nil {
		block.Input = json.RawMessage("{}")
	}
	if err := b.begin(toolUseBlock, block); err != nil {
		return err
	}
	if err := b.delta(toolUseBlock, string(c.Arguments)); err != nil {
		return err
	}
	return b.end()
}

// send sends an event about the last block if the response is streamed.
func (b *blocks) send(name string, event func(at int) any) error {
	if b.stream == nil {
		return nil
	}
	return b.stream.events.Send(name, event(len(b.list)-1))
}

// close completes the last block. A response of only white space gets a text block.
func (b *blocks) close() error {
	if held := b.held.String(); len(b.list) == 0 && held != "" {
		if err := b.begin(textBlock, blockJSON{Type: textBlock}); err != nil {
			return err
		}
		b.text.WriteString(held)
		if err := b.delta(textBlock, held); err != nil {
			return err
		}
	}
	return b.end()
}
