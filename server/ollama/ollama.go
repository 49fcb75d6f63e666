package ollama

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/chat/parse"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// Common parts of Ollama's generate and chat, https://docs.ollama.com/api as of 0.33. Extensions are marked.

// endJSON is part of the last message of a response. Durations are in nanoseconds.
type endJSON struct {
	DoneReason string        `json:"done_reason,omitempty"`
	Total      int64         `json:"total_duration,omitempty"`
	Load       int64         `json:"load_duration,omitempty"`
	Prompt     int           `json:"prompt_eval_count,omitempty"`
	PromptTime int64         `json:"prompt_eval_duration,omitempty"`
	Tokens     int           `json:"eval_count,omitempty"`
	TokensTime int64         `json:"eval_duration,omitempty"`
	Stats      *server.Stats `json:"stats,omitempty"`    // an extension
	LeftOut    []string      `json:"left_out,omitempty"` // an extension: what best_effort did not enforce
}

func endOf(o server.Outcome) endJSON {
	s := server.NewStats(o.Stats)
	return endJSON{
		DoneReason: string(o.Done), Total: int64(o.Total), Load: int64(o.Load),
		Prompt: o.Stats.PromptTokens, PromptTime: int64(o.Stats.PromptTime),
		Tokens: o.Stats.Tokens, TokensTime: int64(o.Stats.GenerateTime), Stats: &s,
		LeftOut: o.LeftOut,
	}
}

// Done reasons of requests that only load or unload a model.
const (
	doneLoad   = "load"
	doneUnload = "unload"
)

// callJSON is a tool call.
type callJSON struct {
	ID       string       `json:"id,omitempty"`
	Function functionJSON `json:"function"`
}

type functionJSON struct {
	Index     int             `json:"index"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// calls converts tool calls. The first one gets the index from. One without an id gets one like Ollama's.
func calls(from int, list []parse.ToolCall) []callJSON {
	var out []callJSON
	for i, c := range list {
		id := c.ID
		if id == "" {
			id = "call_" + strings.ToLower(rand.Text()[:8])
		}
		out = append(out, callJSON{id, functionJSON{from + i, c.Name, c.Arguments}})
	}
	return out
}

// debugJSON is the prompt of a request that only wants to see it.
type debugJSON struct {
	Rendered string `json:"rendered_template"`
	Images   int    `json:"image_count,omitempty"`
}

// debugInfo returns the text of a prompt's tokens.
func (s *api) debugInfo(ctx context.Context, m *server.Model, p *prompt.Prompt) (*debugJSON, error) {
	text, err := s.core.Decode(ctx, m, p.IDs, false)
	return &debugJSON{text, len(p.Pictures)}, err
}

// now returns the timestamp of a message.
func now() time.Time { return time.Now().UTC() }

// streams reports whether to stream a response. The default is true.
func streams(wanted *bool) bool { return wanted == nil || *wanted }

// onlyLoad handles a request without a prompt, with which clients preload or unload a model. It returns the done
// reason.
func (s *api) onlyLoad(r *http.Request, name string, keep params.KeepAlive) (string, error) {
	if name == "" {
		return "", wire.BadRequest("model is required")
	}
	if keep.Unloads() {
		return doneUnload, missing(s.core.Unload(r.Context(), name), notFound, name)
	}
	m, err := s.find(r.Context(), name, notFound)
	if err != nil {
		return "", err
	}
	return doneLoad, s.core.Load(r.Context(), m, keep.Duration)
}
