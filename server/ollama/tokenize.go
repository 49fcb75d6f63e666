package ollama

import (
	"context"
	"math"
	"net/http"

	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/wire"
)

// Tokenizing, with the routes and names of vLLM's server. It does not load the model.

// tokenizeRequest is the body of /v1/tokenize: a text or a conversation.
type tokenizeRequest struct {
	Model    string          `json:"model"`
	Prompt   *string         `json:"prompt"`
	Messages []chatMessage   `json:"messages"` // as in /api/chat, with Tools and Think
	Tools    []chat.Tool     `json:"tools"`
	Think    params.Thinking `json:"think"`
	Special  *bool           `json:"add_special_tokens"` // for Prompt; default true, like completions
	Texts    bool            `json:"return_token_strs"`
}

type tokenizeJSON struct {
	Count   int      `json:"count"`
	Context int      `json:"max_model_len"`
	Tokens  []int32  `json:"tokens"`
	Texts   []string `json:"token_strs,omitempty"` // as in the vocabulary
}

// tokenize is POST /v1/tokenize.
func (s *api) tokenize(w http.ResponseWriter, r *http.Request) error {
	var q tokenizeRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	if (q.Prompt == nil) == (q.Messages == nil) {
		return wire.BadRequest("either prompt or messages is required")
	}
	m, err := s.core.Find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	out := tokenizeJSON{Context: m.Context()}
	if out.Tokens, out.Count, err = s.tokensOf(r, m, q); err != nil {
		return err
	}
	if out.Tokens == nil {
		out.Tokens = []int32{}
	}
	if q.Texts {
		const header = 16 // of a string
		size := m.Tokenizer().TextSize(out.Tokens, math.MaxInt) + header*len(out.Tokens)
		if err := wire.Take(r.Context(), int64(size)); err != nil {
			return err
		}
		out.Texts = make([]string, 0, len(out.Tokens))
		for _, id := range out.Tokens {
			text, _ := m.Tokenizer().Token(id)
			out.Texts = append(out.Texts, text)
		}
	}
	return wire.WriteJSON(w, out)
}

// tokensOf returns the tokens of a request, and their number including those of pictures.
func (s *api) tokensOf(r *http.Request, m *server.Model, q tokenizeRequest) (ids []int32, n int, err error) {
	switch {
	case q.Messages != nil:
		c, err := chatRequest{Messages: q.Messages, Tools: q.Tools, Think: q.Think}.conversation(m.Style)
		if err != nil {
			return nil, 0, err
		}
		p, err := s.core.MakePrompt(r.Context(), m, m.Style, c)
		if err != nil {
			return nil, 0, err
		}
		n, err = m.CountPrompt(r.Context(), p.IDs, p.Pictures)
		return p.IDs, n, err
	case q.Special != nil && !*q.Special && m.Tokenizer() != nil:
		ids, err = s.core.EncodeWith(r.Context(), *q.Prompt, func(ctx context.Context, text string) ([]int32, error) {
			return m.Tokenizer().Encode(ctx, text, false)
		})
	default:
		ids, err = s.core.Encode(r.Context(), m, *q.Prompt)
	}
	return ids, len(ids), err
}

// detokenizeRequest is the body of /v1/detokenize.
type detokenizeRequest struct {
	Model  string  `json:"model"`
	Tokens []int32 `json:"tokens"`
	Skip   bool    `json:"skip_special_tokens"`
}

type detokenizeJSON struct {
	Prompt string `json:"prompt"`
}

// detokenize is POST /v1/detokenize.
func (s *api) detokenize(w http.ResponseWriter, r *http.Request) error {
	var q detokenizeRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	m, err := s.core.Find(r.Context(), q.Model)
	if err != nil {
		return err
	}
	if tok := m.Tokenizer(); tok != nil {
		for i, id := range q.Tokens {
			if id < 0 || int(id) >= tok.Size() {
				return wire.BadRequest("tokens[%d] is %d, must be below the vocabulary size %d", i, id, tok.Size())
			}
		}
	}
	text, err := s.core.Decode(r.Context(), m, q.Tokens, q.Skip)
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, detokenizeJSON{text})
}
