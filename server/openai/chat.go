package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/chat/jinja"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/tools"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// chatCompletion is the body of /v1/chat/completions.
type chatCompletion struct {
	Model    string       `json:"model"`
	Messages chatMessages `json:"messages"`

	Tools      chatTools      `json:"tools"`
	ToolChoice tools.Choice   `json:"tool_choice"`
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

	// The older form of tools.
	Functions    chatFunctions `json:"functions"`
	FunctionCall tools.Choice  `json:"function_call"`

	Modalities unsupported `json:"modalities"`
	Audio      unsupported `json:"audio"`
	WebSearch  unsupported `json:"web_search_options"`
	MinTokens  unsupported `json:"min_tokens"`
	BeamSearch unsupported `json:"use_beam_search"`
}

// chatTools are tools in the form of chat completions, chatFunctions functions in the older form.
type (
	chatTools     tools.List
	chatFunctions tools.List
)

// legacy reports whether the request has functions instead of tools.
func (q *chatCompletion) legacy() bool { return len(q.Functions) > 0 && len(q.Tools) == 0 }

// use returns the request's tools, how the response may call them, and those for the chat template.
func (q *chatCompletion) use(ctx context.Context) (set *tools.Set, u server.ToolUse, shown []chat.Tool, err error) {
	if set, err = tools.ReadFunctions(ctx, tools.List(q.Functions)); err == nil {
		u, shown, err = set.Use(q.FunctionCall, new(bool))
	}
	if err != nil {
		return nil, u, nil, err
	}
	if !q.legacy() {
		if set, err = tools.ReadChat(ctx, tools.List(q.Tools)); err == nil {
			u, shown, err = set.Use(q.ToolChoice, q.Parallel)
		}
	}
	u.Schemas = q.SchemaOptions
	return set, u, shown, err
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
		q.Modalities.check("modalities", `["text"]`), q.Audio.check("audio"), q.WebSearch.check("web_search_options"),
		q.MinTokens.check("min_tokens"), q.BeamSearch.check("use_beam_search"),
	} {
		if err != nil {
			return err
		}
	}
	if q.TopLogProbs != 0 && !q.LogProbs {
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
	messages, err := q.Messages.decode()
	if err != nil {
		return err
	}
	name := func(i int) string { return fmt.Sprintf("messages[%d]", i) }
	c, err := turns(messages, m.Style, name, s.viewer(r.Context(), m))
	if err != nil {
		return err
	}
	set, use, shown, err := q.use(r.Context())
	if err != nil {
		return err
	}
	c.Tools, c.Continue = shown, q.continues()
	q.set(&c.Request)
	if len(q.TemplateArgs) > 0 && string(q.TemplateArgs) != "null" {
		if c.Extra, err = jinja.DecodeVars(q.TemplateArgs); err != nil {
			return wire.BadParam("chat_template_kwargs", "%v", err)
		}
	}
	most, field := q.MaxCompletion, "max_completion_tokens"
	if most == nil {
		most, field = q.MaxTokens, "max_tokens"
	}
	o, err := q.options(most, field)
	if err != nil {
		return err
	}
	n, err := choices(q.N)
	if err != nil {
		return err
	}
	p, err := s.core.MakePrompt(r.Context(), m, m.Style, c)
	if err != nil {
		return err
	}
	jobs, err := s.chatJobs(m, p, n, use, q.Format.Format, o, params.LogProbOptions{LogProbs: q.LogProbs,
		TopLogProbs: q.TopLogProbs})
	if err != nil {
		return err
	}
	a := newChatWriter(events, m, n, &q, set)
	all, err := s.runChoices(r.Context(), jobs, begun, events, a, q.Stream)
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
func (s *api) chatJobs(m *server.Model, prompt *prompt.Prompt, n int, use server.ToolUse, f params.Format,
	o params.Options, l params.LogProbOptions) ([]server.Job, error) {
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
