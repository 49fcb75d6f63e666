package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/prompt"
)

// chatCompletion is the body of /v1/chat/completions.
type chatCompletion struct {
	Model    string         `json:"model"`
	Messages []chat.Message `json:"messages"`

	Tools      []chat.Tool    `json:"tools"`
	ToolChoice toolChoice     `json:"tool_choice"`
	Parallel   *bool          `json:"parallel_tool_calls"`
	Format     responseFormat `json:"response_format"`
	Effort     effort         `json:"reasoning_effort"`

	N             *int          `json:"n"`
	MaxTokens     *int          `json:"max_tokens"`
	MaxCompletion *int          `json:"max_completion_tokens"`
	LogProbs      bool          `json:"logprobs"`
	TopLogProbs   int           `json:"top_logprobs"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
	sampling

	TemplateArgs json.RawMessage `json:"chat_template_kwargs"` // an extension of other servers: template variables

	Functions    unsupported `json:"functions"`
	FunctionCall unsupported `json:"function_call"`
	Modalities   unsupported `json:"modalities"`
	Audio        unsupported `json:"audio"`
	WebSearch    unsupported `json:"web_search_options"`
	Verbosity    unsupported `json:"verbosity"`
	MinTokens    unsupported `json:"min_tokens"`
	BeamSearch   unsupported `json:"use_beam_search"`
}

type streamOptions struct {
	Usage bool `json:"include_usage"`
}

func (q *chatCompletion) check() error {
	for _, err := range []error{
		q.Functions.check("functions"), q.FunctionCall.check("function_call", `"auto"`),
		q.Modalities.check("modalities", `["text"]`), q.Audio.check("audio"), q.WebSearch.check("web_search_options"),
		q.Verbosity.check("verbosity", `"medium"`), q.MinTokens.check("min_tokens"),
		q.BeamSearch.check("use_beam_search"),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case len(q.Messages) == 0:
		return badParam("messages", "at least one message is required")
	case q.TopLogProbs != 0 && !q.LogProbs:
		return badParam("top_logprobs", "requires logprobs")
	}
	return checkTop("top_logprobs", q.TopLogProbs)
}

// chatCompletions is POST /v1/chat/completions.
func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q chatCompletion
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	m, err := s.find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	style, err := m.chatStyle()
	if err != nil {
		return err
	}
	c, err := turns(q.Messages, style, func(i int) string { return fmt.Sprintf("messages[%d]", i) })
	if err != nil {
		return err
	}
	use, tools, err := q.ToolChoice.use(q.Tools, q.Parallel)
	if err != nil {
		return err
	}
	c.Tools, c.Think, c.ThinkLevel = tools, q.Effort.on, q.Effort.level
	if len(q.TemplateArgs) > 0 && string(q.TemplateArgs) != "null" {
		if c.Extra, err = jinja.DecodeVars(q.TemplateArgs); err != nil {
			return badParam("chat_template_kwargs", "%v", err)
		}
	}
	most, name := q.MaxCompletion, "max_completion_tokens"
	if most == nil {
		most, name = q.MaxTokens, "max_tokens"
	}
	o, err := q.options(most, name)
	if err != nil {
		return err
	}
	n, err := choices(q.N)
	if err != nil {
		return err
	}
	jobs, err := s.chatJobs(r, m, c, n, use, q.Format.format, o, logProbOptions{q.LogProbs, q.TopLogProbs})
	if err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].begun = begun
	}
	a := newChatWriter(w, m, n, q.LogProbs)
	all, err := s.runAll(r.Context(), jobs, func(i int, p piece) error {
		if q.Stream {
			return a.sendPiece(i, p)
		}
		a.collect(i, p)
		return nil
	})
	if err != nil {
		return err
	}
	usage := usageOf(all[:1], all)
	if q.Stream {
		return a.end(all, usage, q.StreamOptions.Usage)
	}
	return writeJSON(w, a.response(all, usage))
}

// chatJobs returns jobs for n choices of a conversation.
func (s *Server) chatJobs(r *http.Request, m *model, c prompt.Conversation, n int, use toolUse, f format, o options,
	l logProbOptions) ([]job, error) {
	prompt, err := s.makePrompt(r.Context(), m, m.style, c)
	if err != nil {
		return nil, err
	}
	if err := checkLength(m, prompt); err != nil {
		return nil, err
	}
	var jobs []job
	for i := range n {
		p, err := prompt.Again()
		if err != nil {
			return nil, err
		}
		j, err := s.job(m, p, o, format{}, l)
		if err != nil {
			return nil, err
		}
		if j.request.Format, err = use.format(m, p, f); err != nil {
			return nil, err
		}
		if use.single && len(use.offers) > 0 {
			j.calls = 1
		}
		setSeed(&j.request, i)
		jobs = append(jobs, j)
	}
	return jobs, nil
}
