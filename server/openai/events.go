package openai

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/items"
	"github.com/ingotml/ingot/server/wire"
)

// outputItem is an item of a response: reasoning, a message or a tool call.
type outputItem struct {
	ID        string        `json:"id"`
	Type      string        `json:"type"`
	Status    string        `json:"status,omitempty"`
	Role      string        `json:"role,omitempty"`              // of a message
	Summary   *[]outputPart `json:"summary,omitempty"`           // of reasoning; always empty: Content has the full text
	Content   *[]outputPart `json:"content,omitempty"`           // of reasoning and messages
	Encrypted string        `json:"encrypted_content,omitempty"` // of reasoning, if requested, and of a summary

	// Of a call.
	CallID    string          `json:"call_id,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // text of a function's, object of a search
	Input     *string         `json:"input,omitempty"`     // of a custom tool
	Execution string          `json:"execution,omitempty"` // of a search for tools: client
}

// outputPart is a content part of an item.
type outputPart struct {
	Type        string         `json:"type"`
	Text        string         `json:"text"`
	Annotations *[]struct{}    `json:"annotations,omitempty"` // of a message; always empty
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
	Input        *string        `json:"input,omitempty"`
	LogProbs     *[]chatLogProb `json:"logprobs,omitempty"`
}

// Types of items with text, and of their parts.
const (
	itemMessage   = "message"
	itemReasoning = "reasoning"
	partMessage   = "output_text"
	partReasoning = "reasoning_text"
)

// responsesWriter writes a response, as a stream or as one object. OpenAI's clients rely on the order of events: for
// each item in turn, the item and its part are added, the text comes in deltas, and then the complete text, part and
// item.
type responsesWriter struct {
	exchange  *exchange
	w         http.ResponseWriter
	events    *wire.Stream // nil: not streamed
	send      wire.Send    // of events; valid while no other event is sent, see during
	encrypted bool
	wantsLogs bool

	response responseJSON
	number   int // sequence number of the next event
	begun    bool
	open     string // type of the last item if it is not complete; "": none
	text     strings.Builder
	logs     []chatLogProb // of the open message
	pending  []chatLogProb // of tokens without text so far
}

// newResponsesWriter returns the writer of a response. The caller must stop its events.
func newResponsesWriter(w http.ResponseWriter, q *responseRequest, every time.Duration) *responsesWriter {
	a := &responsesWriter{w: w, response: newResponse(q)}
	for _, more := range q.Include {
		a.encrypted = a.encrypted || more == includeReasoning
	}
	if q.Stream {
		a.events = wire.NewEvents(w, every, a.fail)
	}
	return a
}

// start sets what the job of the response says. The first events are sent when the model has queued the request.
func (a *responsesWriter) start(e *exchange, r *runtime.Request) {
	a.exchange, a.wantsLogs = e, r.LogProbs
	a.response.Tools = append(a.response.Tools, e.tools.Listed()...)
	a.response.Temperature, a.response.TopP = r.Sampling.Temperature, r.Sampling.TopP
	if a.events != nil {
		r.Queued = func() { _ = a.during(a.begin) } // fails only if the client has disconnected
		a.events.KeepAlive(func(send wire.Send) error {
			a.send = send
			return a.keepAlive()
		})
	}
}

// during calls f while no other event is sent.
func (a *responsesWriter) during(f func() error) error {
	if a.events == nil {
		return f()
	}
	return a.events.Do(func(send wire.Send) error {
		a.send = send
		return f()
	})
}

// keepAlive sends an event that changes nothing. Codex counts only events as signs of life. A response in progress
// replaces what clients have gathered, so while an item is not complete, the event is an empty delta of it.
func (a *responsesWriter) keepAlive() error {
	switch {
	case !a.begun:
		return a.begin()
	case a.open != "":
		return a.sendDelta("")
	}
	return a.sendResponse("response.in_progress")
}

// sendEvent sends an event if the response is streamed.
func (a *responsesWriter) sendEvent(e responseEvent) error {
	if a.events == nil {
		return nil
	}
	e.Number = a.number
	a.number++
	return a.send(e.Type, e)
}

// sendItem sends an event about the last item.
func (a *responsesWriter) sendItem(e responseEvent) error {
	i := len(a.response.Output) - 1
	e.OutputIndex = &i
	if e.Item == nil {
		e.ItemID = a.response.Output[i].ID
	}
	return a.sendEvent(e)
}

// sendResponse sends an event with the response so far.
func (a *responsesWriter) sendResponse(kind string) error {
	return a.sendEvent(responseEvent{Type: kind, Response: &a.response})
}

// begin sends the first events, unless they were sent before.
func (a *responsesWriter) begin() error {
	if a.begun {
		return nil
	}
	a.begun = true
	if err := a.sendResponse("response.created"); err != nil {
		return err
	}
	return a.sendResponse("response.in_progress")
}

// piece adds a piece of the response.
func (a *responsesWriter) piece(p server.Piece) error {
	return a.during(func() error { return a.add(p) })
}

func (a *responsesWriter) add(p server.Piece) error {
	if err := a.begin(); err != nil {
		return err
	}
	if a.wantsLogs {
		a.pending = append(a.pending, chatLogProbsOf(a.exchange.model, p.LogProbs)...)
	}
	if p.Thinking != "" {
		if err := a.addText(itemReasoning, p.Thinking); err != nil {
			return err
		}
	}
	if p.Text != "" {
		if err := a.addText(itemMessage, p.Text); err != nil {
			return err
		}
	}
	for _, c := range p.Calls {
		if err := a.call(c); err != nil {
			return err
		}
	}
	return nil
}

// addText appends text to the open item if it has this type, or else starts an item.
func (a *responsesWriter) addText(kind, text string) error {
	if a.open != kind {
		if err := a.close(); err != nil {
			return err
		}
		if err := a.beginItem(kind); err != nil {
			return err
		}
	}
	a.text.WriteString(text)
	return a.sendDelta(text)
}

// sendDelta sends more text of the open item, with the logprobs that belong to it.
func (a *responsesWriter) sendDelta(text string) error {
	e := responseEvent{Type: "response." + partReasoning + ".delta", ContentIndex: new(0), Delta: &text}
	if a.open == itemMessage {
		e.Type = "response." + partMessage + ".delta"
		e.LogProbs = &[]chatLogProb{}
		*e.LogProbs = append(*e.LogProbs, a.pending...)
		a.logs = append(a.logs, a.pending...)
	}
	a.pending = nil
	return a.sendItem(e)
}

// part returns the content of the open item so far.
func (a *responsesWriter) part() outputPart {
	if a.open == itemReasoning {
		return outputPart{Type: partReasoning, Text: a.text.String()}
	}
	logs := append([]chatLogProb{}, a.logs...)
	return outputPart{Type: partMessage, Text: a.text.String(), Annotations: &[]struct{}{}, LogProbs: &logs}
}

// beginItem starts an item with text.
func (a *responsesWriter) beginItem(kind string) error {
	a.open, a.logs = kind, nil
	a.text.Reset()
	item := outputItem{ID: server.NewID("msg_"), Type: kind, Status: statusInProgress, Role: chat.Assistant,
		Content: &[]outputPart{}}
	if kind == itemReasoning {
		item.ID, item.Role, item.Summary = server.NewID("rs_"), "", &[]outputPart{}
	}
	a.response.Output = append(a.response.Output, item)
	if err := a.sendItem(responseEvent{Type: "response.output_item.added", Item: &item}); err != nil {
		return err
	}
	part := a.part()
	return a.sendItem(responseEvent{Type: "response.content_part.added", ContentIndex: new(0), Part: &part})
}

// close completes the open item, if any.
func (a *responsesWriter) close() error {
	if a.open == "" {
		return nil
	}
	part := a.part()
	e := responseEvent{Type: "response." + part.Type + ".done", ContentIndex: new(0), Text: &part.Text,
		LogProbs: part.LogProbs}
	if err := a.sendItem(e); err != nil {
		return err
	}
	if err := a.sendItem(responseEvent{Type: "response.content_part.done", ContentIndex: new(0),
		Part: &part}); err != nil {
		return err
	}
	item := &a.response.Output[len(a.response.Output)-1]
	item.Status, item.Content = statusCompleted, &[]outputPart{part}
	if a.encrypted && a.open == itemReasoning {
		item.Encrypted = items.Reasoning.Seal(part.Text)
	}
	a.open = ""
	return a.sendItem(responseEvent{Type: "response.output_item.done", Item: item})
}

// end completes the response. No keep-alive follows.
func (a *responsesWriter) end(o server.Outcome) error {
	a.events.Stop()
	return a.during(func() error { return a.complete(o) })
}

func (a *responsesWriter) complete(o server.Outcome) error {
	finish := a.close
	if a.exchange.compacts {
		finish = a.summary
	}
	if err := finish(); err != nil {
		return err
	}
	r := &a.response
	r.Status, r.CompletedAt = statusCompleted, new(time.Now().Unix())
	if o.Done == runtime.DoneLength {
		r.Status, r.CompletedAt, r.Incomplete = statusIncomplete, nil, &responseIncomplete{"max_output_tokens"}
	}
	r.LeftOut = o.LeftOut
	r.Usage = usageOfResponse(o)
	return a.sendResponse("response." + r.Status)
}

// cancel completes a response that was cancelled. No keep-alive follows.
func (a *responsesWriter) cancel() error {
	a.events.Stop()
	return a.during(func() error {
		if err := a.begin(); err != nil {
			return err
		}
		a.abandon()
		a.response.Status = statusCancelled
		return a.sendResponse("response." + statusCancelled)
	})
}

// status sets the status of a response that ends otherwise, without an event.
func (a *responsesWriter) status(status string, e *responseError) {
	_ = a.during(func() error { // nothing is sent
		a.abandon()
		a.response.Status, a.response.Error = status, e
		return nil
	})
}

// abandon ends the open item, if any, as it is.
func (a *responsesWriter) abandon() {
	if a.open != "" {
		item := &a.response.Output[len(a.response.Output)-1]
		item.Status, item.Content = statusIncomplete, &[]outputPart{a.part()}
		a.open = ""
	}
}

// errorOf returns an error as responses have it.
func errorOf(t wire.Error) *responseError {
	code := openAICode(t)
	switch {
	case code != "":
	case t.Status >= http.StatusInternalServerError:
		code = "server_error"
	default:
		code = "invalid_prompt"
	}
	return &responseError{code, t.Message}
}

// fail ends a stream with an error.
func (a *responsesWriter) fail(t wire.Error) error {
	return a.during(func() error {
		if err := a.begin(); err != nil {
			return err
		}
		a.response.Status, a.response.Error = statusFailed, errorOf(t)
		return a.sendResponse("response." + statusFailed)
	})
}
