package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// textCompletion is the body of /v1/completions: it completes prompts verbatim, without a chat template.
type textCompletion struct {
	Model         string        `json:"model"`
	Prompt        prompts       `json:"prompt"`
	N             *int          `json:"n"`
	Suffix        string        `json:"suffix"` // the text after the gap that is filled; empty: there is no gap
	MaxTokens     *int          `json:"max_tokens"`
	Echo          bool          `json:"echo"`
	LogProbs      *int          `json:"logprobs"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
	sampling

	BestOf    unsupported `json:"best_of"`
	MinTokens unsupported `json:"min_tokens"`
}

// prompts are one or several texts or lists of token ids.
type prompts []promptInput

type promptInput struct {
	text string
	ids  []int32 // used instead of text if not nil
}

func (p *prompts) UnmarshalJSON(b []byte) error {
	var text *string
	if jsonfit.Unmarshal(b, &text) == nil {
		if text != nil {
			*p = prompts{{text: *text}}
		}
		return nil
	}
	var ids []int32
	if jsonfit.Unmarshal(b, &ids) == nil {
		if len(ids) > 0 {
			*p = prompts{{ids: ids}}
		}
		return nil
	}
	var list []json.RawMessage
	if jsonfit.Unmarshal(b, &list) != nil {
		return jsonfit.Wrong(b, "a string, an array of token ids, or an array of either")
	}
	for i, one := range list {
		var input promptInput
		err := jsonfit.Wrong(one, "a string or an array of token ids")
		switch one[0] {
		case '"':
			err = jsonfit.Unmarshal(one, &input.text)
		case '[':
			if err = jsonfit.Unmarshal(one, &input.ids); err == nil && len(input.ids) == 0 {
				err = jsonfit.Errorf("no token ids")
			}
		}
		if err != nil {
			return jsonfit.In(err, i)
		}
		*p = append(*p, input)
	}
	return nil
}

func (q *textCompletion) check() error {
	one := "1"
	if q.N != nil {
		one = fmt.Sprint(*q.N)
	}
	for _, err := range []error{
		q.BestOf.check("best_of", one), q.MinTokens.check("min_tokens"),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case len(q.Prompt) == 0:
		return wire.BadParam("prompt", "missing or empty")
	case q.Suffix != "" && q.Echo && q.LogProbs != nil:
		return wire.BadParam("logprobs", "not supported with echo and a suffix, whose tokens come before the completion's")
	}
	if q.LogProbs != nil {
		return checkTop("logprobs", *q.LogProbs)
	}
	return nil
}

// completions is POST /v1/completions.
func (s *api) completions(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var q textCompletion
	if err := read(r, &q); err != nil {
		return err
	}
	events := s.events(w, q.Stream)
	defer events.Stop()
	m, err := s.core.Find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	n, err := choices(q.N)
	if err != nil {
		return err
	}
	if n*len(q.Prompt) > maxChoices {
		return wire.BadParam("prompt", "%d prompts with %d choices each: at most %d choices are allowed",
			len(q.Prompt), n, maxChoices)
	}
	a := newTextWriter(events, m, n*len(q.Prompt), q.LogProbs != nil)
	jobs, err := s.textJobs(r.Context(), m, &q, n, a)
	if err != nil {
		return err
	}
	all, err := s.runChoices(r.Context(), jobs, begun, events, a, q.Stream)
	if err != nil {
		return err
	}
	var first []server.Outcome // the first choice of each prompt
	for i := 0; i < len(all); i += n {
		first = append(first, all[i])
	}
	usage := usageOf(first, all)
	if q.Stream {
		return a.end(all, usage, q.StreamOptions.Usage)
	}
	return wire.WriteJSON(w, a.response(all, usage))
}

// textJobs returns the jobs for n choices of each prompt, and gives the prompts to the writer if they are repeated.
func (s *api) textJobs(ctx context.Context, m *server.Model, q *textCompletion, n int, a *textWriter) ([]server.Job,
	error) {
	most, only := q.MaxTokens, q.MaxTokens != nil && *q.MaxTokens == 0
	if only {
		most = nil
	}
	o, err := q.options(most, "max_tokens")
	if err != nil {
		return nil, err
	}
	logs := params.LogProbOptions{}
	if q.LogProbs != nil {
		logs = params.LogProbOptions{LogProbs: true, TopLogProbs: *q.LogProbs}
	}
	scored := 0
	var jobs []server.Job
	for _, p := range q.Prompt {
		made, err := s.textPrompt(ctx, m, p, q.Suffix)
		if err != nil {
			return nil, err
		}
		ids := made.IDs
		if err := checkLength(m, made); err != nil && !(only && len(ids) == m.Context()) {
			return nil, err
		}
		for i := range n {
			j, err := s.core.NewJob(m, made, o, params.Format{}, logs)
			if err != nil {
				return nil, err
			}
			j.Request.PromptOnly = only
			setSeed(&j.Request, i)
			if q.Echo {
				if a.choices[len(jobs)].echo, err = s.newEcho(ctx, m, p, ids); err != nil {
					return nil, err
				}
				j.Request.PromptLogProbs = logs.LogProbs
			}
			if j.Request.PromptLogProbs {
				scored += len(ids) * (1 + logs.TopLogProbs)
			}
			jobs = append(jobs, j)
		}
	}
	if scored > limits.PromptLogProbs {
		return nil, wire.BadParam("logprobs", "the prompts have %d logprobs with echo, at most %d are allowed: "+
			"send fewer prompts in a request, or ask for fewer logprobs", scored, limits.PromptLogProbs)
	}
	const one = 300 // bytes of a logprob, as it comes from the model and as it is answered
	return jobs, wire.Take(ctx, one*int64(scored))
}

// textPrompt returns the prompt of a text or token ids, which has a gap before the suffix if there is one.
func (s *api) textPrompt(ctx context.Context, m *server.Model, p promptInput, suffix string) (*prompt.Prompt, error) {
	if suffix != "" {
		if m.Infill() == nil {
			return nil, wire.BadParam("suffix", "%s has no tokens for it in its vocabulary; use a code model", m.Name())
		}
		return s.core.EncodeInfill(ctx, m, p.text, p.ids, suffix, math.MaxInt)
	}
	made := &prompt.Prompt{IDs: p.ids, Continues: true}
	var err error
	if p.ids == nil {
		made.IDs, err = s.core.Encode(ctx, m, p.text)
	}
	return made, err
}
