package server

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/conns"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/budget"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/wire"
)

// The memory of requests: what their prompts take while they are rendered and tokenized, and what they hold until they
// end, of their bodies and their answers. Prompts have a budget of their own, since they wait for nobody.

func promptMemory(t times) *budget.Budget {
	return budget.New(budget.Options{Total: limits.PromptMemory, What: "the prompt", Wait: t.memory,
		Queue: limits.PromptQueue, IdleTimeout: t.clientIdle})
}

// requestMemory returns the budget of bodies and answers, whose total suits the largest body.
func requestMemory(largest int64, t times) *budget.Budget {
	const bodies, least = 8, 64 << 20
	return budget.New(budget.Options{Total: max(bodies*largest, least), What: "the request", Wait: t.memory,
		Queue: limits.PromptQueue, IdleTimeout: t.clientIdle})
}

// account opens the account of a request, whose renders and encodings take turns with those of others.
func (s *Server) account(r *http.Request, key *keys.Key) (*http.Request, *budget.Account) {
	client := clientOf(r, key)
	a := s.memory.Open(client)
	return r.WithContext(s.gate.Join(budget.With(r.Context(), a), client)), a
}

// clientOf tells clients apart: by their keys, and without keys by their addresses.
func clientOf(r *http.Request, key *keys.Key) string {
	if key != nil {
		return "key " + key.String()
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return conns.Client(from.Addr()).String()
}

// Encode tokenizes a text verbatim.
func (s *Server) Encode(ctx context.Context, m *Model, text string) ([]int32, error) {
	return s.EncodeWith(ctx, text, m.Encode)
}

// EncodeInfill returns the prompt for the gap between two texts, of which the first one may be token ids. The model's
// vocabulary has tokens for it. A prompt of more than most tokens gets less of both texts.
func (s *Server) EncodeInfill(ctx context.Context, m *Model, prefix string, ids []int32, suffix string,
	most int) (*prompt.Prompt, error) {
	f := m.Infill()
	all, err := s.EncodeWith(ctx, prefix+suffix, func(ctx context.Context, _ string) ([]int32, error) {
		if ids != nil {
			return f.EncodeAfter(ctx, ids, suffix, most)
		}
		return f.Encode(ctx, prefix, suffix, most)
	})
	return &prompt.Prompt{IDs: all, Continues: true, EndTokens: f.Ends()}, err
}

// Decode returns the text of token ids, whose memory is counted for the request. Tokens may be long, so a short list
// may stand for a longer text than a prompt may have, which is refused.
func (s *Server) Decode(ctx context.Context, m *Model, ids []int32, skipSpecial bool) (string, error) {
	t := m.Tokenizer()
	if t == nil {
		return "", fmt.Errorf("%s: %w", m.Name(), runtime.ErrNoTokenizer)
	}
	const copies = 2
	if err := wire.Take(ctx, copies*int64(t.TextSize(ids, limits.PromptText))); err != nil {
		return "", err
	}
	text, ok, err := t.DecodeWithin(ctx, ids, skipSpecial, limits.PromptText)
	if err == nil && !ok {
		err = wire.BadRequest("the text of the %d tokens has more than %d bytes: send fewer at once", len(ids),
			limits.PromptText)
	}
	return text, err
}

// EncodeWith calls encode within the memory for prompts.
func (s *Server) EncodeWith(ctx context.Context, text string,
	encode func(context.Context, string) ([]int32, error)) ([]int32, error) {
	return prompt.Encode(ctx, s.prompts, text, encode)
}
