package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
)

// What the endpoints of OpenAI's API share, https://platform.openai.com/docs/api-reference as of November 2026. What is ours, or of other
// servers, beyond it is said where it stands.

// openAIFailure is the body of an error.
type openAIFailure struct {
	Error openAIErrorJSON `json:"error"`
}

type openAIErrorJSON struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// openAIError writes an error as OpenAI's clients expect it.
func openAIError(t told) any {
	e := openAIErrorJSON{Message: t.message, Type: "invalid_request_error", Param: orNull(t.param), Code: orNull(openAICode(t))}
	if t.status >= http.StatusInternalServerError {
		e.Type = "server_error"
	}
	return openAIFailure{e}
}

// openAICode is the word by which programs know an error: there are a few that they look for.
func openAICode(t told) string {
	switch {
	case errors.Is(t.err, manifest.ErrNotFound):
		return "model_not_found"
	case errors.Is(t.err, errLong), errors.Is(t.err, runtime.ErrMemory):
		return "context_length_exceeded"
	case t.status == http.StatusUnauthorized:
		return "invalid_api_key"
	}
	return ""
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// errLong says that a prompt is longer than the model's context.
var errLong = talk.ErrLong

// checkLength finds prompts out that cannot fit, so that their clients hear it by a word that they know.
func checkLength(m *model, p *talk.Prompt) error {
	if n, limit := len(p.IDs), m.Context(); n >= limit {
		return fmt.Errorf("the prompt has %d tokens, the model's context %d: %w", n, limit, errLong)
	}
	return nil
}

// newID makes the id of something in an answer.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// callID is that of a call: where the model gave none, one that the strictest templates take, which want nine letters and digits.
func callID(c parse.ToolCall) string {
	if c.ID != "" {
		return c.ID
	}
	return rand.Text()[:9]
}

// fingerprint changes with what the name of a model means.
func (m *model) fingerprint() string { return "fp_" + m.entry.Digest.Encoded()[:10] }

// usageJSON counts an answer.
type usageJSON struct {
	Prompt     int              `json:"prompt_tokens"`
	Completion int              `json:"completion_tokens"`
	Total      int              `json:"total_tokens"`
	OfPrompt   promptTokens     `json:"prompt_tokens_details"`
	OfAnswer   completionTokens `json:"completion_tokens_details"`
}

type promptTokens struct {
	Cached int `json:"cached_tokens"`
}

// completionTokens are about drafts, and how many tokens there were up to the end of thinking.
type completionTokens struct {
	Reasoning int `json:"reasoning_tokens"`
	Accepted  int `json:"accepted_prediction_tokens"`
	Rejected  int `json:"rejected_prediction_tokens"`
}

// usageOf adds answers up, and prompts, each of which one answer stands for.
func usageOf(prompts, all []outcome) usageJSON {
	var u usageJSON
	for _, o := range prompts {
		u.Prompt += o.stats.PromptTokens
		u.OfPrompt.Cached += o.stats.CachedTokens
	}
	for _, o := range all {
		u.Completion += o.stats.Tokens
		u.OfAnswer.Reasoning += o.thought
		u.OfAnswer.Accepted += o.stats.Accepted
		u.OfAnswer.Rejected += o.stats.Drafted - o.stats.Accepted
	}
	u.Total = u.Prompt + u.Completion
	return u
}
