package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// chatCompletion is the body of /v1/chat/completions.
type chatCompletion struct {
	Model    string         `json:"model"`
	Messages []chat.Message `json:"messages"`

	Tools      []chat.Tool    `json:"tools"`
	ToolChoice toolChoice     `json:"tool_choice"`
	Parallel   *bool          `json:"parallel_tool_calls"`
	Format     responseFormat `json:"response_format"`
	thinking
	continuing

	N             *int          `json:"n"`
	MaxTokens     *int          `json:"max_tokens"`
	MaxCompletion *int          `json:"max_completion_tokens"`
	LogProbs      bool          `json:"logprobs"`
	TopLogProbs   int           `json:"top_logprobs"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
	sampling
	params.SchemaOptions

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

// thinking has the fields by which clients of different servers say how much the model thinks.
type thinking struct {
	Effort    params.Thinking `json:"reasoning_effort"`
	Reasoning params.Thinking `json:"reasoning"` // extensions of other servers
	Thinking  params.Thinking `json:"thinking"`
	Think     params.Thinking `json:"think"`
	Enable    params.Thinking `json:"enable_thinking"`
	Budget    params.Thinking `json:"thinking_budget"`
}

func (t thinking) set(r *chat.Request) {
	t.Effort.Or(t.Reasoning).Or(t.Thinking).Or(t.Think).Or(t.Enable).Or(t.Budget).Set(r)
}

// continuing says whether the model continues a last message of its own, as it does by default.
type continuing struct {
	Continue *bool `json:"continue_final_message"` // extensions of other servers
	Generate *bool `json:"add_generation_prompt"`
}

func (c continuing) continues() bool {
	if c.Continue != nil {
		return *c.Continue
	}
	return c.Generate == nil || !*c.Generate
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
		return wire.BadParam("messages", "at least one message is required")
	case q.TopLogProbs != 0 && !q.LogProbs:
		return wire.BadParam("top_logprobs", "requires logprobs")
	}
	return checkTop("top_logprobs", q.TopLogProbs)
}

// chatCompletions is POST /v1/chat/completions.
func (s *api) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q chatCompletion
	if err := read(r, &q); err != nil {
		return err
	}
	events := s.events(w, q.Stream)
	defer events.Stop()
	m, err := s.core.Find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	c, err := turns(q.Messages, m.Style, func(i int) string { return fmt.Sprintf("messages[%d]", i) })
	if err != nil {
		return err
	}
	use, tools, err := q.ToolChoice.use(q.Tools, q.Parallel)
	if err != nil {
		return err
	}
	use.Schemas = q.SchemaOptions
	c.Tools, c.Continue = tools, q.continues()
	q.set(&c.Request)
	if len(q.TemplateArgs) > 0 && string(q.TemplateArgs) != "null" {
		if c.Extra, err = jinja.DecodeVars(q.TemplateArgs); err != nil {
			return wire.BadParam("chat_template_kwargs", "%v", err)
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
	jobs, err := s.chatJobs(r, m, c, n, use, q.Format.Format, o, params.LogProbOptions{LogProbs: q.LogProbs,
		TopLogProbs: q.TopLogProbs})
	if err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].Begun, jobs[i].Request.Queued = begun, events.Open
	}
	a := newChatWriter(events, m, n, q.LogProbs)
	all, err := s.core.RunAll(r.Context(), jobs, func(i int, p server.Piece) error {
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
	return wire.WriteJSON(w, a.response(all, usage))
}

// chatJobs returns jobs for n choices of a conversation.
func (s *api) chatJobs(r *http.Request, m *server.Model, c prompt.Conversation, n int, use server.ToolUse,
	f params.Format, o params.Options,
	l params.LogProbOptions) ([]server.Job, error) {
	prompt, err := s.core.MakePrompt(r.Context(), m, m.Style, c)
	if err != nil {
		return nil, err
	}
	if err := checkLength(m, prompt); err != nil {
		return nil, err
	}
	var jobs []server.Job
	for i := range n {
		p, err := prompt.Again()
		if err != nil {
			return nil, err
		}
		j, err := s.core.NewJob(m, p, o, params.Format{}, l)
		if err != nil {
			return nil, err
		}
		if j.Request.Format, err = use.Format(m, p, f); err != nil {
			return nil, err
		}
		if use.Single && len(use.Offers) > 0 {
			j.Calls = 1
		}
		setSeed(&j.Request, i)
		jobs = append(jobs, j)
	}
	return jobs, nil
}
