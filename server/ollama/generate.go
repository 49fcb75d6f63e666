package ollama

import (
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// generateRequest is the body of /api/generate.
type generateRequest struct {
	Model     string           `json:"model"`
	Prompt    string           `json:"prompt"`
	Suffix    string           `json:"suffix"`
	System    string           `json:"system"` // empty means the model's: Ollama's own clients always send the field
	Template  string           `json:"template"`
	Context   []int32          `json:"context"`
	Raw       bool             `json:"raw"`
	Images    []string         `json:"images"`
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

// generateJSON is one message of the response stream.
type generateJSON struct {
	Model     string               `json:"model"`
	CreatedAt time.Time            `json:"created_at"`
	Response  string               `json:"response"`
	Thinking  string               `json:"thinking,omitempty"`
	Calls     []callJSON           `json:"tool_calls,omitempty"`
	IDs       []int32              `json:"ids,omitempty"`
	LogProbs  []server.LogProbJSON `json:"logprobs,omitempty"`
	Done      bool                 `json:"done"`
	Context   []int32              `json:"context,omitempty"`
	Debug     *debugJSON           `json:"_debug_info,omitempty"`
	endJSON
}

// generate is POST /api/generate: it completes a prompt.
func (s *api) generate(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q generateRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	if q.Prompt == "" && q.Suffix == "" && len(q.Images) == 0 {
		reason, err := s.onlyLoad(r, q.Model, q.KeepAlive)
		if err != nil {
			return err
		}
		return wire.WriteJSON(w, generateJSON{Model: q.Model, CreatedAt: now(), Done: true,
			endJSON: endJSON{DoneReason: reason}})
	}
	if q.Render {
		q.Stream = new(false)
	}
	message := func(p part) generateJSON {
		return generateJSON{Model: q.Model, CreatedAt: now(), Response: p.text, Thinking: p.thinking, Calls: p.calls,
			IDs: p.ids, LogProbs: p.logProbs}
	}
	lines := lines(w, q.Stream, s.core.Silence(), func() any { return message(part{}) })
	defer lines.Stop()
	m, err := s.find(r.Context(), q.Model, notFound)
	if err != nil {
		return err
	}
	if err := canGenerate(m, "generate"); err != nil {
		return err
	}
	in := s.window(m, q.windowOptions, q.Options)
	prompt, err := s.generatePrompt(r, m, q, in)
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
		return wire.WriteJSON(w, generateJSON{Model: m.RequestedName(), CreatedAt: now(), Debug: debug})
	}
	j, err := s.core.NewJob(m, prompt, q.Options, q.With(q.Format), q.LogProbOptions)
	if err != nil {
		return err
	}
	j.Keep, j.Begun, j.Request.Queued = q.KeepAlive.Duration, begun, lines.Open
	in.shifts = in.shifts && len(prompt.EndTokens) == 0 // a prompt with a gap would lose its parts
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
	if len(prompt.Pictures) == 0 { // token ids cannot restore pictures
		last.Context = slices.Concat(prompt.IDs, g.tokens)
	}
	if lines != nil {
		return lines.Last("", last)
	}
	return wire.WriteJSON(w, last)
}

// generatePrompt returns the prompt of a request: verbatim if it is raw, otherwise as a user message in the template.
func (s *api) generatePrompt(r *http.Request, m *server.Model, q generateRequest, in window) (*prompt.Prompt,
	error) {
	var pictures []runtime.Picture
	for i, text := range q.Images {
		p, err := server.DecodePicture(text, i)
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, p)
	}
	if q.Raw {
		if q.System != "" || q.Template != "" || q.Suffix != "" || len(q.Context) > 0 {
			return nil, wire.BadRequest("raw excludes system, template, suffix and context: they need the template")
		}
		text, shown, err := m.ShowPictures(q.Prompt, pictures)
		if err != nil {
			return nil, err
		}
		ids, err := s.core.Encode(r.Context(), m, text)
		return &prompt.Prompt{IDs: ids, Pictures: shown, Continues: true}, err
	}
	style := m.Style
	if q.Template != "" {
		var err error
		if style, err = style.With(r.Context(), q.Template); err != nil {
			return nil, wire.BadRequest("template: %v", err)
		}
	}
	if q.Suffix != "" && !style.Fills() {
		return s.infillPrompt(r, m, q, in)
	}
	c := prompt.Conversation{Pictures: pictures}
	c.Suffix = q.Suffix
	q.Think.Set(&c.Request)
	if q.System != "" {
		c.Messages = append(c.Messages, chat.Message{Role: "system", Content: q.System})
	}
	c.Messages = append(c.Messages, prompt.UserTurn(q.Prompt, len(pictures)))
	if len(q.Context) == 0 {
		c.Messages = style.WithImageMessages(c.Messages)
	} else {
		c.Messages = style.WithSystem(c.Messages)
	}
	p, err := s.prompt(r.Context(), style, c, in)
	if err == nil && len(q.Context) > 0 {
		p.IDs = slices.Concat(q.Context, withoutBOS(m, p.IDs))
	}
	return p, err
}

// infillPrompt returns the prompt for the gap before a suffix, by the vocabulary's tokens for that. It has no template
// and thus no system message.
func (s *api) infillPrompt(r *http.Request, m *server.Model, q generateRequest, in window) (*prompt.Prompt, error) {
	switch {
	case m.Infill() == nil:
		return nil, wire.BadRequest("suffix: %s does not support insert: its template does not use a suffix, and its "+
			"vocabulary has no tokens for one; use a code model", m.Name())
	case len(q.Images) > 0:
		return nil, wire.BadRequest("images: %s has no place for pictures in a prompt with a suffix", m.Name())
	case len(q.Context) > 0:
		return nil, wire.BadRequest("context: %s has no place for it in a prompt with a suffix", m.Name())
	}
	p, err := s.core.EncodeInfill(r.Context(), m, q.Prompt, nil, q.Suffix, math.MaxInt)
	if err == nil && in.truncates && len(p.IDs) >= in.Context { // as for other prompts, half of the context is then free
		p, err = s.core.EncodeInfill(r.Context(), m, q.Prompt, nil, q.Suffix, in.Context/2)
	}
	return p, err
}

// withoutBOS removes a leading BOS token from ids that continue other ids.
func withoutBOS(m *server.Model, ids []int32) []int32 {
	if bos, ok := m.Tokenizer().BOS(); ok && len(ids) > 0 && ids[0] == bos {
		return ids[1:]
	}
	return ids
}
