package server

import (
	"bytes"
	"context"
	"time"

	"github.com/ingotml/ingot/internal/limits/jsonfit"
	"github.com/ingotml/ingot/prompt"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/wire"
)

// EmbedRequest are the parameters of an embedding request.
type EmbedRequest struct {
	Input      Inputs
	Truncate   bool
	Dimensions int // 0: all
	Keep       *time.Duration
	Context    *int // maximum tokens of an input; nil: the model's context
}

// Embed computes embeddings. load is the time it took to load the model.
func (s *Server) Embed(ctx context.Context, m *Model, q EmbedRequest) (e runtime.Embeddings, load time.Duration,
	err error) {
	size, err := m.EmbeddingSize()
	if err != nil {
		return e, 0, err
	}
	if q.Dimensions < 0 || q.Dimensions > size {
		return e, 0, wire.BadRequest("dimensions is %d, must be between 1 and %d for %s", q.Dimensions, size, m.Name())
	}
	request := runtime.EmbedRequest{Dimensions: q.Dimensions}
	if request.Inputs, err = s.inputTokens(ctx, m, q); err != nil {
		return e, 0, err
	}
	if q.Dimensions > 0 {
		size = q.Dimensions
	}
	const number = 16 // bytes, of the number and of how the model's process sends it
	if err := wire.Take(ctx, number*int64(size)*int64(len(request.Inputs))); err != nil {
		return e, 0, err
	}
	load, err = s.withProcess(ctx, m, q.Keep, func(lease *pool.Lease) (said bool, err error) {
		e, err = runtime.Embed(ctx, lease.Model, request)
		return false, err
	})
	s.metrics.Embedded(m.Name(), e.Tokens)
	keys.From(ctx).Charge(e.Tokens, 0)
	return e, load, err
}

// inputTokens returns the token ids of each input.
func (s *Server) inputTokens(ctx context.Context, m *Model, q EmbedRequest) (ids [][]int32, err error) {
	limit := m.Context()
	if q.Context != nil && *q.Context > 0 {
		limit = min(limit, *q.Context)
	}
	ids = q.Input.ids
	for i, text := range q.Input.Texts {
		cut := false
		one, err := prompt.Encode(ctx, s.prompts, text, func(ctx context.Context, text string) (one []int32, err error) {
			one, cut, err = m.EncodeWithin(ctx, text, limit)
			return one, err
		})
		if err != nil {
			return nil, err
		}
		if cut && !q.Truncate {
			return nil, s.inputTooLong(ctx, m, text, i, limit)
		}
		ids = append(ids, one)
	}
	for i, one := range ids {
		switch {
		case len(one) == 0:
			return nil, wire.BadRequest("input %d is empty", i)
		case len(one) > limit && q.Truncate:
			ids[i] = one[:limit]
		case len(one) > limit:
			return nil, tooLong(i, len(one), limit)
		}
	}
	return ids, nil
}

// inputTooLong returns an error with the length of a text that exceeds the limit.
func (s *Server) inputTooLong(ctx context.Context, m *Model, text string, i, limit int) error {
	ids, err := s.Encode(ctx, m, text)
	if err != nil {
		return err
	}
	return tooLong(i, len(ids), limit)
}

// tooLong is the error about an input. Clients of Ollama's API look for its last words.
func tooLong(i, tokens, limit int) error {
	return wire.BadRequest("input %d has %d tokens, at most %d are allowed: the input length exceeds the context length",
		i, tokens, limit)
}

// maxInputs is the maximum number of inputs per request, the same as OpenAI's.
const maxInputs = 2048

// Inputs are the inputs of an embedding request. In JSON: a text, a list of token ids, or a list of either.
type Inputs struct {
	Texts []string
	ids   [][]int32
}

// IsEmpty reports whether there are no inputs.
func (q Inputs) IsEmpty() bool { return len(q.Texts)+len(q.ids) == 0 }

// UnmarshalJSON implements json.Unmarshaler.
func (q *Inputs) UnmarshalJSON(b []byte) error {
	var err error
	list, isList := bytes.CutPrefix(b, []byte("["))
	first := bytes.TrimLeft(list, " \t\r\n")[0]
	switch {
	case string(b) == `""`, string(b) == "null", isList && first == ']': // empty
	case !isList && first != '"':
		err = jsonfit.Wrong(b, "a string, an array of token ids, or an array of either")
	case !isList:
		q.Texts = make([]string, 1)
		err = jsonfit.Unmarshal(b, &q.Texts[0])
	case first == '"':
		err = jsonfit.Unmarshal(b, &q.Texts)
	case first == '[':
		err = jsonfit.Unmarshal(b, &q.ids)
	default:
		q.ids = make([][]int32, 1)
		err = jsonfit.Unmarshal(b, &q.ids[0])
	}
	if err != nil {
		return err
	}
	if n := len(q.Texts) + len(q.ids); n > maxInputs {
		return jsonfit.Errorf("%d elements, at most %d are allowed", n, maxInputs)
	}
	return nil
}
