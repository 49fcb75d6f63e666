package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/runtime"
)

// embedParams are the parameters of an embedding request.
type embedParams struct {
	input      inputs
	truncate   bool
	dimensions int // 0: all
	keep       *time.Duration
	context    *int // maximum tokens of an input; nil: the model's context
}

// vectors computes embeddings. load is the time it took to load the model.
func (s *Server) vectors(ctx context.Context, name string, q embedParams) (m *model, e runtime.Embeddings,
	load time.Duration, err error) {
	if m, err = s.find(ctx, name); err != nil {
		return nil, e, 0, err
	}
	size, err := m.EmbeddingSize()
	if err != nil {
		return nil, e, 0, err
	}
	if q.dimensions < 0 || q.dimensions > size {
		return nil, e, 0, badRequest("dimensions is %d, must be between 1 and %d for %s", q.dimensions, size, m.name())
	}
	request := runtime.EmbedRequest{Dimensions: q.dimensions}
	if request.Inputs, err = s.inputTokens(ctx, m, q); err != nil {
		return nil, e, 0, err
	}
	lease, load, err := s.acquire(ctx, m)
	if err != nil {
		return nil, e, 0, err
	}
	defer lease.Release(q.keep)
	e, err = runtime.Embed(ctx, lease.Model, request)
	s.metrics.embedded(m.name(), e.Tokens)
	return m, e, load, err
}

// inputTokens returns the token ids of each input.
func (s *Server) inputTokens(ctx context.Context, m *model, q embedParams) (ids [][]int32, err error) {
	limit := m.Context()
	if q.context != nil && *q.context > 0 {
		limit = min(limit, *q.context)
	}
	ids = q.input.ids
	for i, text := range q.input.texts {
		cut := false
		one, err := prompt.Encode(ctx, s.prompts, text, func(text string) (one []int32, err error) {
			one, cut, err = m.EncodeWithin(text, limit)
			return one, err
		})
		if err != nil {
			return nil, err
		}
		if cut && !q.truncate {
			return nil, s.inputTooLong(ctx, m, text, i, limit)
		}
		ids = append(ids, one)
	}
	for i, one := range ids {
		switch {
		case len(one) == 0:
			return nil, badRequest("input %d is empty", i)
		case len(one) > limit && q.truncate:
			ids[i] = one[:limit]
		case len(one) > limit:
			return nil, badRequest("input %d has %d tokens, at most %d are allowed", i, len(one), limit)
		}
	}
	return ids, nil
}

// inputTooLong returns an error with the length of a text that exceeds the limit.
func (s *Server) inputTooLong(ctx context.Context, m *model, text string, i, limit int) error {
	ids, err := s.encode(ctx, m, text)
	if err != nil {
		return err
	}
	return badRequest("input %d has %d tokens, at most %d are allowed", i, len(ids), limit)
}

// maxInputs is the maximum number of inputs per request, the same as OpenAI's.
const maxInputs = 2048

// inputs are the inputs of an embedding request. In JSON: a text, a list of token ids, or a list of either.
type inputs struct {
	texts []string
	ids   [][]int32
}

func (q inputs) isEmpty() bool { return len(q.texts)+len(q.ids) == 0 }

func (q *inputs) UnmarshalJSON(b []byte) error {
	var texts texts
	var one []int32
	switch {
	case string(b) == `""`: // empty
	case json.Unmarshal(b, &texts) == nil:
		q.texts = texts
	case json.Unmarshal(b, &one) == nil:
		q.ids = [][]int32{one}
	case json.Unmarshal(b, &q.ids) != nil:
		return fmt.Errorf("input must be a text, a list of token ids, or a list of either")
	}
	if n := len(q.texts) + len(q.ids); n > maxInputs {
		return fmt.Errorf("input has %d elements, at most %d are allowed", n, maxInputs)
	}
	return nil
}
