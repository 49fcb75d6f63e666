package anthropic

import (
	"net/http"
	"time"

	"github.com/ingotml/ingot/server/wire"
)

// messageStream is a stream of events that starts with message_start. Its keep-alives are pings. Before the prompt is
// built they are comments, since message_start has the number of its tokens. Errors are events.
type messageStream struct {
	events *wire.Stream
	first  messageJSON
	begun  bool // message_start was sent
}

// newMessageStream returns a stream. The caller must stop its events.
func newMessageStream(w http.ResponseWriter, every time.Duration) *messageStream {
	m := &messageStream{}
	m.events = wire.NewEvents(w, every, func(t wire.Error) error { return m.events.Send("error", anthropicError(t)) })
	return m
}

// start sets the first message, with the token counts known before the prompt is evaluated.
func (m *messageStream) start(first messageJSON) {
	m.first = first
	m.events.KeepAlive(func(send wire.Send) error {
		if err := m.message(send, first.Usage); err != nil {
			return err
		}
		return send("ping", typeJSON{"ping"})
	})
}

// begin sends message_start unless it was sent before. u has the token counts known so far.
func (m *messageStream) begin(u messagesUsage) error {
	return m.events.Do(func(send wire.Send) error { return m.message(send, u) })
}

func (m *messageStream) message(send wire.Send, u messagesUsage) error {
	if m.begun {
		return nil
	}
	m.begun, m.first.Usage = true, u
	return send("message_start", struct {
		Type    string      `json:"type"`
		Message messageJSON `json:"message"`
	}{"message_start", m.first})
}

// typeJSON is an event without further fields.
type typeJSON struct {
	Type string `json:"type"`
}
