package openai

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/openai/stored"
	"github.com/ingotml/ingot/server/wire"
)

// Common parts of OpenAI's API, https://platform.openai.com/docs/api-reference as of November 2026. Extensions, ours
// and those of other servers, are marked.

// openAIFailure is the body of an error response.
type openAIFailure struct {
	Error openAIErrorJSON `json:"error"`
}

type openAIErrorJSON struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// openAIError returns an error in OpenAI's form.
func openAIError(t wire.Error) any {
	e := openAIErrorJSON{
		Message: t.Message, Type: "invalid_request_error", Param: orNull(t.Param), Code: orNull(openAICode(t)),
	}
	switch {
	case t.Status >= http.StatusInternalServerError:
		e.Type = "server_error"
	case errors.Is(t.Err, keys.ErrTokens):
		e.Type = "tokens"
	case errors.Is(t.Err, keys.ErrRequests):
		e.Type = "requests"
	}
	return openAIFailure{e}
}

// openAICode returns the error code, which is set for errors that clients recognize by it.
func openAICode(t wire.Error) string {
	code := fault.CodeOf(t.Err)
	switch {
	case code != "":
	case t.Status == http.StatusUnauthorized:
		return "invalid_api_key"
	case t.Param == previousField && errors.Is(t.Err, stored.ErrUnknown):
		return "previous_response_not_found"
	}
	return string(code)
}

// read reads and checks the body of a request.
func read(r *http.Request, body interface{ check() error }) error {
	if err := wire.ReadJSON(r, body); err != nil {
		return err
	}
	return body.check()
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// checkLength rejects prompts that exceed the context length early, with the error that clients recognize.
func checkLength(m *server.Model, p *prompt.Prompt) error {
	if n, limit := len(p.IDs), m.Context(); n >= limit {
		return prompt.TooLong("this model's maximum context length is %d tokens, and the prompt has %d: shorten it", limit, n)
	}
	return nil
}

// events returns a stream that sends errors in OpenAI's form, or nil if the response is not streamed. The caller must
// stop it.
func (s *api) events(w http.ResponseWriter, streamed bool) (e *wire.Stream) {
	if streamed {
		e = wire.NewEvents(w, s.core.Silence(), func(t wire.Error) error { return e.Send("", openAIError(t)) })
	}
	return e
}

// choiceWriter sends or collects the texts of choices.
type choiceWriter interface {
	sendPiece(i int, p server.Piece) error
	collect(i int, p server.Piece)
}

// runChoices runs the jobs of a request that came at begun.
func (s *api) runChoices(
	ctx context.Context, jobs []server.Job, begun time.Time, events *wire.Stream, to choiceWriter, stream bool,
) ([]server.Outcome, error) {
	for i := range jobs {
		jobs[i].Begun, jobs[i].Request.Queued = begun, events.Open
	}
	return s.core.RunAll(ctx, jobs, func(i int, p server.Piece) error {
		if stream {
			return to.sendPiece(i, p)
		}
		to.collect(i, p)
		return nil
	})
}

// fingerprint identifies the model's manifest.
func fingerprint(m *server.Model) string { return "fp_" + m.Entry.Digest.Encoded()[:10] }

// usageJSON are token counts.
type usageJSON struct {
	Prompt       int              `json:"prompt_tokens"`
	Completion   int              `json:"completion_tokens"`
	Total        int              `json:"total_tokens"`
	OfPrompt     promptTokens     `json:"prompt_tokens_details"`
	OfCompletion completionTokens `json:"completion_tokens_details"`
}

type promptTokens struct {
	Cached int `json:"cached_tokens"`
}

// completionTokens breaks down the generated tokens: drafts, and tokens up to the end of thinking.
type completionTokens struct {
	Reasoning int `json:"reasoning_tokens"`
	Accepted  int `json:"accepted_prediction_tokens"`
	Rejected  int `json:"rejected_prediction_tokens"`
}

// usageOf adds up token counts. prompts has one response for each prompt.
func usageOf(prompts, all []server.Outcome) usageJSON {
	var u usageJSON
	for _, o := range prompts {
		u.Prompt += o.Stats.PromptTokens
		u.OfPrompt.Cached += o.Stats.CachedTokens
	}
	for _, o := range all {
		u.Completion += o.Stats.Tokens
		u.OfCompletion.Reasoning += o.Thought
		u.OfCompletion.Accepted += o.Stats.Accepted
		u.OfCompletion.Rejected += o.Stats.Drafted - o.Stats.Accepted
	}
	u.Total = u.Prompt + u.Completion
	return u
}
