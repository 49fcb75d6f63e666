package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
)

// outputItem is a part of an answer: what the model thought, a message, or a call of a tool.
type outputItem struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Status    string        `json:"status,omitempty"`
	Role      string        `json:"role,omitempty"`              // of a message
	Summary   *[]outputPart `json:"summary,omitempty"`           // of thoughts, always empty: they are there themselves
	Content   *[]outputPart `json:"content,omitempty"`           // of thoughts and messages
	Encrypted string        `json:"encrypted_content,omitempty"` // of thoughts where it was asked for: their text, by which clients bring it back
	CallID    string        `json:"call_id,omitempty"`           // of a call
	Name      string        `json:"name,omitempty"`
	Arguments *string       `json:"arguments,omitempty"`
}

// outputPart is the content of an item.
type outputPart struct {
	Type        string         `json:"type"`
	Text        string         `json:"text"`
	Annotations *[]struct{}    `json:"annotations,omitempty"` // of a message, none
	LogProbs    *[]chatLogProb `json:"logprobs,omitempty"`
}

// responseEvent is an event of a stream.
type responseEvent struct {
	Type         string         `json:"type"`
	Number       int            `json:"sequence_number"`
	Response     *responseJSON  `json:"response,omitempty"`
	OutputIndex  *int           `json:"output_index,omitempty"`
	Item         *outputItem    `json:"item,omitempty"`
	ItemID       string         `json:"item_id,omitempty"`
	ContentIndex *int           `json:"content_index,omitempty"`
	Part         *outputPart    `json:"part,omitempty"`
	Delta        *string        `json:"delta,omitempty"`
	Text         *string        `json:"text,omitempty"`
	Name         string         `json:"name,omitempty"`
	Arguments    *string        `json:"arguments,omitempty"`
	LogProbs     *[]chatLogProb `json:"logprobs,omitempty"`
}

// The types of items whose text comes in pieces, and of that text.
const (
	itemMessage   = "message"
	itemReasoning = "reasoning"
	partMessage   = "output_text"
	partReasoning = "reasoning_text"
)

// responseAnswer writes an answer, as it comes or at the end. The events have the order that OpenAI's clients rely on: an item is added, its
// part, its text in pieces, then the text, the part and the item once more as a whole; one item after the other.
type responseAnswer struct {
	m         *model
	w         http.ResponseWriter
	events    *events // nil: the answer is told at the end
	encrypted bool
	wantsLogs bool

	response responseJSON
	number   int // of the next event
	begun    bool
	open     string // the type of the item that is being written, which is the last one; "" is none
	text     strings.Builder
	logs     []chatLogProb // of the open message
	pending  []chatLogProb // of tokens whose text has not come
}

func newResponseAnswer(w http.ResponseWriter, m *model, q *responseRequest, r runtime.Request) *responseAnswer {
	a := &responseAnswer{m: m, w: w, response: newResponse(m, q, r), wantsLogs: r.LogProbs}
	for _, more := range q.Include {
		a.encrypted = a.encrypted || more == includeReasoning
	}
	if q.Stream {
		a.events = &events{w: w, last: a.fail}
	}
	return a
}

// send sends an event, in a stream.
func (a *responseAnswer) send(e responseEvent) error {
	if a.events == nil {
		return nil
	}
	e.Number = a.number
	a.number++
	return a.events.send(e.Type, e)
}

// about sends an event about the last item.
func (a *responseAnswer) about(e responseEvent) error {
	i := len(a.response.Output) - 1
	e.OutputIndex = &i
	if e.Item == nil {
		e.ItemID = a.response.Output[i].ID
	}
	return a.send(e)
}

// whole sends an event with all that there is of the answer.
func (a *responseAnswer) whole(kind string) error {
	return a.send(responseEvent{Type: kind, Response: &a.response})
}

// piece adds what came.
func (a *responseAnswer) piece(p piece) error {
	if !a.begun {
		a.begun = true
		if err := a.whole("response.created"); err != nil {
			return err
		}
		if err := a.whole("response.in_progress"); err != nil {
			return err
		}
	}
	if a.wantsLogs {
		a.pending = append(a.pending, a.m.chatLogProbs(p.logProbs)...)
	}
	if p.thinking != "" {
		if err := a.add(itemReasoning, p.thinking); err != nil {
			return err
		}
	}
	if p.text != "" {
		if err := a.add(itemMessage, p.text); err != nil {
			return err
		}
	}
	for _, c := range p.calls {
		if err := a.call(c); err != nil {
			return err
		}
	}
	return nil
}

// add adds text to the item that is being written, or to a new one.
func (a *responseAnswer) add(kind, text string) error {
	if a.open != kind {
		if err := a.close(); err != nil {
			return err
		}
		if err := a.begin(kind); err != nil {
			return err
		}
	}
	a.text.WriteString(text)
	e := responseEvent{Type: "response." + partReasoning + ".delta", ContentIndex: new(0), Delta: &text}
	if kind == itemMessage {
		e.Type = "response." + partMessage + ".delta"
		e.LogProbs = &[]chatLogProb{}
		*e.LogProbs = append(*e.LogProbs, a.pending...)
		a.logs = append(a.logs, a.pending...)
	}
	a.pending = nil
	return a.about(e)
}

// part is what the item that is being written has by now.
func (a *responseAnswer) part() outputPart {
	if a.open == itemReasoning {
		return outputPart{Type: partReasoning, Text: a.text.String()}
	}
	logs := append([]chatLogProb{}, a.logs...)
	return outputPart{Type: partMessage, Text: a.text.String(), Annotations: &[]struct{}{}, LogProbs: &logs}
}

// begin begins an item that has text.
func (a *responseAnswer) begin(kind string) error {
	a.open, a.logs = kind, nil
	a.text.Reset()
	item := outputItem{ID: newID("msg_"), Type: kind, Status: "in_progress", Role: assistant, Content: &[]outputPart{}}
	if kind == itemReasoning {
		item.ID, item.Role, item.Summary = newID("rs_"), "", &[]outputPart{}
	}
	a.response.Output = append(a.response.Output, item)
	if err := a.about(responseEvent{Type: "response.output_item.added", Item: &item}); err != nil {
		return err
	}
	part := a.part()
	return a.about(responseEvent{Type: "response.content_part.added", ContentIndex: new(0), Part: &part})
}

// close ends the item that is being written.
func (a *responseAnswer) close() error {
	if a.open == "" {
		return nil
	}
	part := a.part()
	e := responseEvent{Type: "response." + part.Type + ".done", ContentIndex: new(0), Text: &part.Text, LogProbs: part.LogProbs}
	if err := a.about(e); err != nil {
		return err
	}
	if err := a.about(responseEvent{Type: "response.content_part.done", ContentIndex: new(0), Part: &part}); err != nil {
		return err
	}
	item := &a.response.Output[len(a.response.Output)-1]
	item.Status, item.Content = "completed", &[]outputPart{part}
	if a.encrypted && a.open == itemReasoning {
		item.Encrypted = part.Text
	}
	a.open = ""
	return a.about(responseEvent{Type: "response.output_item.done", Item: item})
}

// call adds a call of a tool.
func (a *responseAnswer) call(c parse.ToolCall) error {
	if err := a.close(); err != nil {
		return err
	}
	a.pending = nil
	item := outputItem{ID: newID("fc_"), Type: "function_call", Status: "in_progress", CallID: callID(c), Name: c.Name, Arguments: new("")}
	a.response.Output = append(a.response.Output, item)
	if err := a.about(responseEvent{Type: "response.output_item.added", Item: &item}); err != nil {
		return err
	}
	arguments := string(c.Arguments)
	if err := a.about(responseEvent{Type: "response.function_call_arguments.delta", Delta: &arguments}); err != nil {
		return err
	}
	if err := a.about(responseEvent{Type: "response.function_call_arguments.done", Name: c.Name, Arguments: &arguments}); err != nil {
		return err
	}
	last := &a.response.Output[len(a.response.Output)-1]
	last.Status, last.Arguments = "completed", &arguments
	return a.about(responseEvent{Type: "response.output_item.done", Item: last})
}

// end ends the answer.
func (a *responseAnswer) end(o outcome) error {
	if err := a.close(); err != nil {
		return err
	}
	r := &a.response
	r.Status, r.CompletedAt = "completed", new(time.Now().Unix())
	if o.done == runtime.DoneLength {
		r.Status, r.CompletedAt, r.Incomplete = "incomplete", nil, &responseIncomplete{"max_output_tokens"}
	}
	s := o.stats
	r.Usage = &responseUsage{s.PromptTokens, promptTokens{s.CachedTokens}, s.Tokens, reasoningTokens{o.thought}, s.PromptTokens + s.Tokens}
	if a.events == nil {
		return writeJSON(a.w, r)
	}
	return a.whole("response." + r.Status)
}

// fail ends a stream with an error.
func (a *responseAnswer) fail(t told) error {
	code := openAICode(t)
	switch {
	case code != "":
	case t.status >= http.StatusInternalServerError:
		code = "server_error"
	default:
		code = "invalid_prompt"
	}
	a.response.Status, a.response.Error = "failed", &responseError{code, t.message}
	return a.whole("response.failed")
}
