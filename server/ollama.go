package server

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/runtime"
)

// What generate and chat of Ollama's API share, https://docs.ollama.com/api as of 0.33. What is ours beyond it is said where it stands.

// endJSON is in the last message of an answer. Times are in nanoseconds.
type endJSON struct {
	DoneReason string `json:"done_reason,omitempty"`
	Total      int64  `json:"total_duration,omitempty"`
	Load       int64  `json:"load_duration,omitempty"`
	Prompt     int    `json:"prompt_eval_count,omitempty"`
	PromptTime int64  `json:"prompt_eval_duration,omitempty"`
	Tokens     int    `json:"eval_count,omitempty"`
	TokensTime int64  `json:"eval_duration,omitempty"`
	Stats      *Stats `json:"stats,omitempty"` // ours
}

// Stats count an answer, as `ingot run --json` prints them.
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

// NewStats are the counts of a request.
func NewStats(s runtime.Stats) Stats {
	return Stats{s.PromptTokens, s.CachedTokens, s.PromptTime.Seconds(), s.Tokens, s.GenerateTime.Seconds(), s.Drafted, s.Accepted, s.TargetSteps}
}

func (o outcome) end() endJSON {
	s := NewStats(o.stats)
	return endJSON{
		DoneReason: string(o.done), Total: int64(o.total), Load: int64(o.load),
		Prompt: o.stats.PromptTokens, PromptTime: int64(o.stats.PromptTime),
		Tokens: o.stats.Tokens, TokensTime: int64(o.stats.GenerateTime), Stats: &s,
	}
}

// Reasons of answers to requests that ask for nothing but the model.
const (
	doneLoad   = "load"
	doneUnload = "unload"
)

// callJSON is a call of a tool.
type callJSON struct {
	ID       string       `json:"id,omitempty"`
	Function functionJSON `json:"function"`
}

type functionJSON struct {
	Index     int             `json:"index"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// calls numbers calls from the given one on.
func calls(from int, list []parse.ToolCall) []callJSON {
	var out []callJSON
	for i, c := range list {
		out = append(out, callJSON{c.ID, functionJSON{from + i, c.Name, c.Arguments}})
	}
	return out
}

// now is the time of a message.
func now() time.Time { return time.Now().UTC() }

// streams tells whether an answer comes in pieces; nil is yes.
func streams(wanted *bool) bool { return wanted == nil || *wanted }

// onlyLoad serves a request without a prompt, by which clients have a model loaded ahead of time, or unloaded: it gives the reason to answer
// with.
func (s *Server) onlyLoad(r *http.Request, name string, keep keepAlive) (string, string, error) {
	if keep.unloads() {
		name, err := s.unload(r.Context(), name)
		return name, doneUnload, err
	}
	m, err := s.find(r.Context(), name)
	if err != nil {
		return "", "", err
	}
	lease, _, err := s.lend(r.Context(), m)
	if err != nil {
		return "", "", err
	}
	lease.Release(keep.Duration)
	return m.name(), doneLoad, nil
}
