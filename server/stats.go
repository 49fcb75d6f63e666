package server

import "github.com/ingotml/ingot/runtime"

// Stats are the statistics of a response, in the form of `ingot run --json`.
type Stats struct {
	PromptTokens  int     `json:"prompt_tokens"`
	CachedTokens  int     `json:"cached_tokens"`
	PromptSeconds float64 `json:"prompt_seconds"`
	Tokens        int     `json:"tokens"`
	Seconds       float64 `json:"seconds"`
	Drafted       int     `json:"drafted"`
	Accepted      int     `json:"accepted"`
	TargetSteps   int     `json:"target_steps"`
}

// NewStats converts the statistics of a request.
func NewStats(s runtime.Stats) Stats {
	return Stats{s.PromptTokens, s.CachedTokens, s.PromptTime.Seconds(), s.Tokens, s.GenerateTime.Seconds(),
		s.Drafted, s.Accepted, s.TargetSteps}
}
