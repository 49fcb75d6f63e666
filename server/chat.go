package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/prompt"
)

// chatRequest is the body of /api/chat.
type chatRequest struct {
	Model     string        `json:"model"`
	Messages  []chatMessage `json:"messages"`
	Tools     []chat.Tool   `json:"tools"`
	Stream    *bool         `json:"stream"`
	Think     thinking      `json:"think"`
	KeepAlive keepAlive     `json:"keep_alive"`
	Options   options       `json:"options"`
	Format    format        `json:"format"`
	logProbOptions
	IDs bool `json:"ids"` // an extension: return token ids with the text
}

// chatMessage is a message in Ollama's form, which has pictures in a separate field.
type chatMessage struct {
	chat.Message
	images []string
}

func (m *chatMessage) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &m.Message); err != nil {
		return err
	}
	var more struct {
		Images   []string `json:"images"`
		ToolName string   `json:"tool_name"`
	}
	if err := json.Unmarshal(b, &more); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	m.images = more.Images
	if m.Name == "" {
		m.Name = more.ToolName
	}
	extra := jinja.NewDict()
	m.Extra.Each(func(k, v jinja.Value) bool {
		if k != "images" && k != "tool_name" {
			_ = extra.Set(k, v)
		}
		return true
	})
	m.Extra = extra
	return nil
}

// chatJSON is one message of the response stream.
type chatJSON struct {
	Model     string        `json:"model"`
	CreatedAt time.Time     `json:"created_at"`
	Message   answerJSON    `json:"message"`
	IDs       []int32       `json:"ids,omitempty"`
	LogProbs  []logProbJSON `json:"logprobs,omitempty"`
	Done      bool          `json:"done"`
	endJSON
}

type answerJSON struct {
	Role     string     `json:"role"`
	Content  string     `json:"content"`
	Thinking string     `json:"thinking,omitempty"`
	Calls    []callJSON `json:"tool_calls,omitempty"`
}

const assistant = "assistant"

// chat is POST /api/chat: it generates the next message of a conversation.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q chatRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if len(q.Messages) == 0 {
		name, reason, err := s.onlyLoad(r, q.Model, q.KeepAlive)
		if err != nil {
			return err
		}
		return writeJSON(w, chatJSON{Model: name, CreatedAt: now(), Message: answerJSON{Role: assistant}, Done: true,
			endJSON: endJSON{DoneReason: reason}})
	}
	m, err := s.find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	prompt, err := s.talkPrompt(r, m, q)
	if err != nil {
		return err
	}
	j, err := s.job(m, prompt, q.Options, q.Format, q.logProbOptions)
	if err != nil {
		return err
	}
	j.keep, j.begun = q.KeepAlive.Duration, begun
	stream, whole := streams(q.Stream), chatJSON{Model: m.name(), Message: answerJSON{Role: assistant}}
	var content, thoughts strings.Builder
	count := 0
	o, err := s.run(r.Context(), j, func(p piece) error {
		part := chatJSON{Model: m.name(), CreatedAt: now(),
			Message: answerJSON{assistant, p.text, p.thinking, calls(count, p.calls)}}
		count += len(p.calls)
		part.LogProbs = m.logProbs(p.logProbs)
		if q.IDs {
			part.IDs = p.ids
		}
		switch {
		case !stream:
			content.WriteString(p.text)
			thoughts.WriteString(p.thinking)
			whole.Message.Calls = append(whole.Message.Calls, part.Message.Calls...)
			whole.IDs = append(whole.IDs, part.IDs...)
			whole.LogProbs = append(whole.LogProbs, part.LogProbs...)
		case !p.empty() || len(part.IDs) > 0:
			return writeLine(w, part)
		}
		return nil
	})
	if err != nil {
		return err
	}
	whole.CreatedAt, whole.Done, whole.endJSON = now(), true, endOf(o)
	whole.Message.Content, whole.Message.Thinking = content.String(), thoughts.String()
	if stream {
		return writeLine(w, whole)
	}
	return writeJSON(w, whole)
}

// talkPrompt builds the prompt of a conversation.
func (s *Server) talkPrompt(r *http.Request, m *model, q chatRequest) (*prompt.Prompt, error) {
	style, err := m.chatStyle()
	if err != nil {
		return nil, err
	}
	c, err := q.conversation(style)
	if err != nil {
		return nil, err
	}
	return s.makePrompt(r.Context(), m, style, c)
}

// conversation returns the template's input: the system message of the request or else of the image, the image's
// messages, and the request's messages. An empty system message counts as none.
func (q chatRequest) conversation(style *prompt.Style) (prompt.Conversation, error) {
	var c prompt.Conversation
	c.Tools, c.Think, c.ThinkLevel = q.Tools, q.Think.on, q.Think.level
	for _, m := range q.Messages {
		for _, text := range m.images {
			p, err := decodePicture(text, len(c.Pictures))
			if err != nil {
				return c, err
			}
			c.Pictures = append(c.Pictures, p)
		}
		if len(m.images) > 0 {
			m.Parts = prompt.TextParts(m.Content, len(m.images))
		}
		c.Messages = append(c.Messages, m.Message)
	}
	c.Messages = style.WithImageMessages(c.Messages)
	return c, nil
}
