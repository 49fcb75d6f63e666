package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
)

// messageJSON is an answer, and without content and reason what a stream begins with.
type messageJSON struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Role         string        `json:"role"`
	Model        string        `json:"model"`
	Content      []blockJSON   `json:"content"`
	StopReason   *string       `json:"stop_reason"`
	StopSequence *string       `json:"stop_sequence"`
	Usage        messagesUsage `json:"usage"`
}

// blockJSON is a block of an answer; each type has fields of its own.
type blockJSON struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// signature is that of thoughts. Nothing is signed: a thought that comes back is taken as it is.
const signature = "ingot"

// messagesUsage counts tokens. Those of the prompt that were found in the prefix cache are not among the input tokens.
type messagesUsage struct {
	Input   int `json:"input_tokens"`
	Created int `json:"cache_creation_input_tokens"`
	Read    int `json:"cache_read_input_tokens"`
	Output  int `json:"output_tokens"`

	Details *outputDetails `json:"output_tokens_details,omitempty"` // at the end
}

type outputDetails struct {
	Thinking int `json:"thinking_tokens"`
}

func messagesUsageOf(s runtime.Stats) messagesUsage {
	return messagesUsage{Input: s.PromptTokens - s.CachedTokens, Read: s.CachedTokens, Output: s.Tokens}
}

// deltaJSON is a part of a block.
type deltaJSON struct {
	Type      string  `json:"type"`
	Text      *string `json:"text,omitempty"`
	Thinking  *string `json:"thinking,omitempty"`
	Signature *string `json:"signature,omitempty"`
	Partial   *string `json:"partial_json,omitempty"`
}

// endDelta is how an answer ended.
type endDelta struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

// Reasons to stop.
const (
	stopEnd      = "end_turn"
	stopLength   = "max_tokens"
	stopContext  = "model_context_window_exceeded"
	stopSequence = "stop_sequence"
	stopTool     = "tool_use"
)

// stopped tells why an answer to a request ended. The model's own stop texts are the end of its turn.
func (q *messagesRequest) stopped(o outcome) (d endDelta) {
	reason := stopEnd
	switch {
	case o.done == runtime.DoneLength && o.stats.Tokens < *q.MaxTokens:
		reason = stopContext
	case o.done == runtime.DoneLength:
		reason = stopLength
	case o.calls > 0:
		reason = stopTool
	default:
		for _, s := range q.StopSequences {
			if s == o.stop && s != "" {
				reason, d.StopSequence = stopSequence, &s
			}
		}
	}
	d.StopReason = &reason
	return d
}

// blocks make blocks of what a model says, one after the other. White space alone is no block between others.
type blocks struct {
	stream *messageStream // nil: they are collected
	list   []blockJSON    // begun so far; what was streamed is not kept
	open   string         // the type of the last one while more may come; empty: none
	text   strings.Builder
	held   string // white space that more has to follow
}

// add takes text of a type.
func (b *blocks) add(kind, text string) error {
	if b.open != kind {
		if b.held += text; strings.TrimFunc(b.held, unicode.IsSpace) == "" {
			return nil
		}
		text, b.held = b.held, ""
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

// begin ends the block before and begins one.
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
	b.open, b.held, b.list = kind, "", append(b.list, block)
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

// end ends the open block.
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

// call adds a call, which comes whole.
func (b *blocks) call(c parse.ToolCall) error {
	block := blockJSON{Type: toolUseBlock, ID: callID(c), Name: c.Name, Input: c.Arguments}
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

// send adds an event about the last block to the stream, where there is one.
func (b *blocks) send(name string, event func(at int) any) error {
	if b.stream == nil {
		return nil
	}
	return b.stream.send(name, event(len(b.list)-1))
}

// close ends the blocks. An answer of white space is still one.
func (b *blocks) close() error {
	if held := b.held; len(b.list) == 0 && held != "" {
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

// messageStream is a stream of events, with pings where nothing else comes for a while. An answer that is long in coming begins with one: from
// then on an error is an event.
type messageStream struct {
	every time.Duration

	mu     sync.Mutex
	events events
	first  messageJSON
	begun  bool
	last   time.Time // when something was sent
	done   chan struct{}
	over   sync.WaitGroup
}

// newMessageStream begins to look for silence. Stop ends that.
func newMessageStream(w http.ResponseWriter, first messageJSON, every time.Duration) *messageStream {
	m := &messageStream{every: every, first: first, last: time.Now(), done: make(chan struct{})}
	m.events = events{w: w, last: func(t told) error { return m.events.send("error", anthropicError(t)) }}
	m.over.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-m.done:
				return
			case <-t.C:
				m.ping()
			}
		}
	})
	return m
}

// stop waits until nothing is sent any more but what the caller sends.
func (m *messageStream) stop() {
	close(m.done)
	m.over.Wait()
}

// begin sends the message that a stream begins with, once; u is what is known of its counts.
func (m *messageStream) begin(u messagesUsage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beginLocked(u)
}

func (m *messageStream) beginLocked(u messagesUsage) error {
	if m.begun {
		return nil
	}
	m.begun, m.first.Usage = true, u
	return m.sendLocked("message_start", struct {
		Type    string      `json:"type"`
		Message messageJSON `json:"message"`
	}{"message_start", m.first})
}

func (m *messageStream) send(name string, v any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sendLocked(name, v)
}

func (m *messageStream) sendLocked(name string, v any) error {
	m.last = time.Now()
	return m.events.send(name, v)
}

// ping sends one if it was silent for long. Errors are those of a client that left, which its request notices.
func (m *messageStream) ping() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.last) < m.every {
		return
	}
	if m.beginLocked(m.first.Usage) == nil {
		_ = m.sendLocked("ping", struct {
			Type string `json:"type"`
		}{"ping"})
	}
}
