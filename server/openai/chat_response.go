package openai

import (
	"cmp"
	"strings"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/wire"
)

// chatCompletionJSON is a response of /v1/chat/completions, or a chunk of a stream.
type chatCompletionJSON struct {
	ID          string           `json:"id"`
	Object      string           `json:"object"`
	Created     int64            `json:"created"`
	Model       string           `json:"model"`
	Fingerprint string           `json:"system_fingerprint"`
	Choices     []chatChoiceJSON `json:"choices"`
	Usage       *usageJSON       `json:"usage,omitempty"`
}

type chatChoiceJSON struct {
	Index    int              `json:"index"`
	Message  *chatMessageJSON `json:"message,omitempty"` // in a response
	Delta    *chatDeltaJSON   `json:"delta,omitempty"`   // in a chunk
	LogProbs *chatLogProbs    `json:"logprobs"`
	Finish   *string          `json:"finish_reason"`
	LeftOut  []string         `json:"left_out,omitempty"` // an extension: what best_effort did not enforce
}

type chatMessageJSON struct {
	Role    string  `json:"role"`
	Content *string `json:"content"` // null if there are only calls
	Refusal *string `json:"refusal"`
	chatExtraJSON
}

type chatDeltaJSON struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	chatExtraJSON
}

// chatExtraJSON has the thinking in both fields that clients read.
type chatExtraJSON struct {
	ReasoningContent string            `json:"reasoning_content,omitempty"`
	Reasoning        string            `json:"reasoning,omitempty"`
	Calls            []chatCallJSON    `json:"tool_calls,omitempty"`
	Call             *chatFunctionJSON `json:"function_call,omitempty"` // of a request with functions instead of tools
}

type chatCallJSON struct {
	Index    *int              `json:"index,omitempty"` // in a chunk
	ID       string            `json:"id"`
	Type     tools.Kind        `json:"type"`
	Function *chatFunctionJSON `json:"function,omitempty"`
	Custom   *chatCustomJSON   `json:"custom,omitempty"`
}

type chatCustomJSON struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

type chatFunctionJSON struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON
}

type chatLogProbs struct {
	Content []chatLogProb `json:"content"`
	Refusal []chatLogProb `json:"refusal"`
}

type chatLogProb struct {
	chatTokenProb
	Top []chatTokenProb `json:"top_logprobs"`
}

type chatTokenProb struct {
	Token   string  `json:"token"`
	LogProb float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// chatLogProbsOf converts logprobs to OpenAI's form.
func chatLogProbsOf(m *server.Model, list []runtime.LogProb) []chatLogProb {
	of := func(p server.LogProbJSON) chatTokenProb {
		if p.Bytes == nil {
			p.Bytes = []int{}
		}
		return chatTokenProb{p.Token, p.LogProb, p.Bytes}
	}
	out := []chatLogProb{}
	for _, l := range m.LogProbs(list) {
		p := chatLogProb{of(l), []chatTokenProb{}}
		for _, t := range l.Top {
			p.Top = append(p.Top, of(t))
		}
		out = append(out, p)
	}
	return out
}

// chatWriter writes the choices of one request, as a stream or as one response.
type chatWriter struct {
	m        *server.Model
	frame    chatCompletionJSON // without choices
	events   *wire.Stream       // nil: not streamed
	logProbs bool
	tools    *tools.Set
	legacy   bool // calls are in the form of function_call
	choices  []chatChoice
}

// chatChoice is the state of one choice.
type chatChoice struct {
	begun          bool
	text, thoughts strings.Builder
	calls          []chatCallJSON
	logProbs       []runtime.LogProb
}

func newChatWriter(events *wire.Stream, m *server.Model, n int, q *chatCompletion, set *tools.Set) *chatWriter {
	a := &chatWriter{m: m, events: events, logProbs: q.LogProbs, tools: set, legacy: q.legacy(),
		choices: make([]chatChoice, n)}
	a.frame = chatCompletionJSON{ID: server.NewID("chatcmpl-"), Object: "chat.completion", Created: time.Now().Unix(),
		Model: m.RequestedName(), Fingerprint: fingerprint(m)}
	return a
}

// collect adds a piece to a choice of the response.
func (a *chatWriter) collect(i int, p server.Piece) {
	c := &a.choices[i]
	c.text.WriteString(p.Text)
	c.thoughts.WriteString(p.Thinking)
	c.calls = append(c.calls, a.calls(p.Calls)...)
	c.logProbs = append(c.logProbs, p.LogProbs...)
}

// response returns the response with the collected choices.
func (a *chatWriter) response(all []server.Outcome, usage usageJSON) chatCompletionJSON {
	out := a.frame
	out.Usage = &usage
	for i := range a.choices {
		c := &a.choices[i]
		text, thoughts := c.text.String(), c.thoughts.String()
		message := &chatMessageJSON{Role: chat.Assistant, Content: &text,
			chatExtraJSON: a.extra(thoughts, c.calls)}
		if text == "" && len(c.calls) > 0 {
			message.Content = nil
		}
		choice := chatChoiceJSON{Index: i, Message: message, Finish: a.finish(all[i]), LeftOut: all[i].LeftOut}
		if a.logProbs {
			choice.LogProbs = &chatLogProbs{Content: chatLogProbsOf(a.m, c.logProbs)}
		}
		out.Choices = append(out.Choices, choice)
	}
	return out
}

// sendPiece sends a piece of a choice as a chunk, unless it would be empty. The first chunk has the role alone.
func (a *chatWriter) sendPiece(i int, p server.Piece) error {
	c := &a.choices[i]
	if !c.begun {
		c.begun = true
		first := &chatDeltaJSON{Role: chat.Assistant, Content: new("")}
		if err := a.send([]chatChoiceJSON{{Index: i, Delta: first}}, nil); err != nil {
			return err
		}
	}
	if p.Empty() {
		return nil
	}
	calls := a.calls(p.Calls)
	for k := range calls {
		calls[k].Index = new(len(c.calls) + k)
	}
	c.calls = append(c.calls, calls...)
	delta := &chatDeltaJSON{chatExtraJSON: a.extra(p.Thinking, calls)}
	if p.Text != "" {
		delta.Content = &p.Text
	}
	choice := chatChoiceJSON{Index: i, Delta: delta}
	if a.logProbs {
		choice.LogProbs = &chatLogProbs{Content: chatLogProbsOf(a.m, p.LogProbs)}
	}
	return a.send([]chatChoiceJSON{choice}, nil)
}

func (a *chatWriter) send(choices []chatChoiceJSON, usage *usageJSON) error {
	chunk := a.frame
	chunk.Object, chunk.Choices, chunk.Usage = "chat.completion.chunk", choices, usage
	return a.events.Send("", chunk)
}

// end sends the last chunks of a stream.
func (a *chatWriter) end(all []server.Outcome, usage usageJSON, withUsage bool) error {
	for i, o := range all {
		if err := a.send([]chatChoiceJSON{{Index: i, Delta: &chatDeltaJSON{}, Finish: a.finish(o),
			LeftOut: o.LeftOut}}, nil); err != nil {
			return err
		}
	}
	if withUsage {
		if err := a.send([]chatChoiceJSON{}, &usage); err != nil {
			return err
		}
	}
	return a.events.Done()
}

func (a *chatWriter) calls(list []parse.ToolCall) (out []chatCallJSON) {
	for _, c := range list {
		call := a.tools.Call(c)
		one := chatCallJSON{ID: server.CallID(c), Type: call.Kind}
		if call.Kind == tools.Custom {
			one.Custom = &chatCustomJSON{call.Name, call.Input}
		} else {
			one.Function = &chatFunctionJSON{call.Name, string(call.Arguments)}
		}
		out = append(out, one)
	}
	return out
}

// extra returns thinking and calls in the form that the request wants.
func (a *chatWriter) extra(thinking string, calls []chatCallJSON) chatExtraJSON {
	out := chatExtraJSON{ReasoningContent: thinking, Reasoning: thinking, Calls: calls}
	if a.legacy && len(calls) > 0 {
		out.Calls, out.Call = nil, calls[0].Function // there is one
	}
	return out
}

// finish returns the finish reason.
func (a *chatWriter) finish(o server.Outcome) *string {
	switch called := o.Calls > 0 && o.Done == runtime.DoneStop; {
	case called && a.legacy:
		return new("function_call")
	case called:
		return new("tool_calls")
	}
	return finishReason(o)
}

// finishReason returns the finish reason of a text.
func finishReason(o server.Outcome) *string { return new(string(cmp.Or(o.Done, runtime.DoneStop))) }
