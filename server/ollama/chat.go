package ollama

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// chatRequest is the body of /api/chat.
type chatRequest struct {
	Model     string           `json:"model"`
	Messages  []chatMessage    `json:"messages"`
	Tools     []chat.Tool      `json:"tools"`
	Stream    *bool            `json:"stream"`
	Think     params.Thinking  `json:"think"`
	KeepAlive params.KeepAlive `json:"keep_alive"`
	Options   params.Options   `json:"options"`
	Format    params.Format    `json:"format"`
	params.SchemaOptions
	params.LogProbOptions
	windowOptions
	IDs    bool `json:"ids"` // an extension: return token ids with the text
	Render bool `json:"_debug_render_only"`
}

// chatMessage is a message in Ollama's form, which has pictures in a separate field.
type chatMessage struct {
	chat.Message
	images []string
}

func (m *chatMessage) UnmarshalJSON(b []byte) error {
	if err := jsonfit.Unmarshal(b, &m.Message); err != nil {
		return err
	}
	var more struct {
		Images   []string `json:"images"`
		ToolName string   `json:"tool_name"`
	}
	if err := jsonfit.Unmarshal(b, &more); err != nil {
		return err
	}
	m.images = more.Images
	if m.Name == "" {
		m.Name = more.ToolName
	}
	m.WithoutExtra("images", "tool_name")
	return nil
}

// chatJSON is one message of the response stream.
type chatJSON struct {
	Model     string               `json:"model"`
	CreatedAt time.Time            `json:"created_at"`
	Message   answerJSON           `json:"message"`
	IDs       []int32              `json:"ids,omitempty"`
	LogProbs  []server.LogProbJSON `json:"logprobs,omitempty"`
	Done      bool                 `json:"done"`
	Debug     *debugJSON           `json:"_debug_info,omitempty"`
	endJSON
}

type answerJSON struct {
	Role     string     `json:"role"`
	Content  string     `json:"content"`
	Thinking string     `json:"thinking,omitempty"`
	Calls    []callJSON `json:"tool_calls,omitempty"`
}

// chat is POST /api/chat: it generates the next message of a conversation.
func (s *api) chat(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q chatRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	if len(q.Messages) == 0 {
		reason, err := s.onlyLoad(r, q.Model, q.KeepAlive)
		if err != nil {
			return err
		}
		return wire.WriteJSON(w, chatJSON{Model: q.Model, CreatedAt: now(), Message: answerJSON{Role: chat.Assistant},
			Done:    true,
			endJSON: endJSON{DoneReason: reason}})
	}
	if q.Render {
		q.Stream = new(false)
	}
	message := func(p part) chatJSON {
		return chatJSON{Model: q.Model, CreatedAt: now(), Message: answerJSON{chat.Assistant, p.text, p.thinking, p.calls},
			IDs: p.ids, LogProbs: p.logProbs}
	}
	lines := lines(w, q.Stream, s.core.Silence(), func() any { return message(part{}) })
	defer lines.Stop()
	m, err := s.find(r.Context(), q.Model, notFound)
	if err != nil {
		return err
	}
	if err := canGenerate(m, "chat"); err != nil {
		return err
	}
	in := s.window(m, q.windowOptions, q.Options)
	c, err := q.conversation(m.Style)
	if err != nil {
		return err
	}
	prompt, err := s.prompt(r.Context(), m.Style, c, in)
	if err == nil {
		err = in.fit(prompt)
	}
	if err != nil {
		return err
	}
	if q.Render {
		debug, err := s.debugInfo(r.Context(), m, prompt)
		if err != nil {
			return err
		}
		return wire.WriteJSON(w, chatJSON{Model: m.RequestedName(), CreatedAt: now(),
			Message: answerJSON{Role: chat.Assistant}, Debug: debug})
	}
	j, err := s.core.NewJob(m, prompt, q.Options, q.With(q.Format), q.LogProbOptions)
	if err != nil {
		return err
	}
	j.Keep, j.Begun, j.Request.Queued = q.KeepAlive.Duration, begun, lines.Open
	in.prepare(&j)
	var stream func(part) error
	if lines != nil {
		stream = func(p part) error { return lines.Send("", message(p)) }
	}
	g, err := s.run(r.Context(), m, j, q.IDs, stream)
	if err != nil {
		return err
	}
	last := message(g.part)
	last.Done, last.endJSON = true, endOf(g.outcome)
	if lines != nil {
		return lines.Last("", last)
	}
	return wire.WriteJSON(w, last)
}

// conversation returns the template's input: the system message of the request or else of the image, the image's
// messages, and the request's messages. An empty system message counts as none.
func (q chatRequest) conversation(style *prompt.Style) (prompt.Conversation, error) {
	var c prompt.Conversation
	c.Tools, c.Continue = q.Tools, true
	q.Think.Set(&c.Request)
	for i, m := range q.Messages {
		m.At, m.Role = fmt.Sprintf("messages[%d]", i), strings.ToLower(m.Role)
		for _, text := range m.images {
			p, err := server.DecodePicture(text, len(c.Pictures))
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
