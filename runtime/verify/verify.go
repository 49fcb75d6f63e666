package verify

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/pictures"
	"github.com/ingotml/ingot/runtime/quality"
)

// verifyChunk is the number of rows whose logits are in memory at once.
const verifyChunk = 256

// Compare evaluates the reference's tokens and compares the logits. If the reference has a greedy continuation, it
// compares that too; else greedyEqual is nil. The tokens contain as many image tokens as the pictures have vectors.
func Compare(
	ctx context.Context, e *batch.Engine, ref *quality.Reference, pictures ...runtime.Picture,
) (c Comparison, greedyEqual *bool, err error) {
	m := e.Model()
	if err := m.Processor.CheckHead(); err != nil {
		return c, nil, err
	}
	vocab := int(m.Processor.Config.Facts().Vocab)
	if ref.Vocab != vocab {
		return c, nil, fmt.Errorf("logits have %d columns, the model's vocabulary %d: %w", ref.Vocab, vocab,
			quality.ErrReference)
	}
	for i, id := range ref.Tokens {
		if id < 0 || int(id) >= vocab {
			return c, nil, fmt.Errorf("tokens[%d] is %d, the vocabulary has %d: %w", i, id, vocab, quality.ErrReference)
		}
	}
	placed, err := m.Pictures.Place(ctx, ref.Tokens, pictures, math.MaxInt)
	if err != nil {
		return c, nil, err
	}
	if placed != nil && len(placed.Tokens) != len(ref.Tokens) {
		return c, nil, fmt.Errorf("the pictures take %d more tokens than the reference has for them: %w",
			len(placed.Tokens)-len(ref.Tokens), quality.ErrReference)
	}
	compare := newComparer(ref)
	if err := forward(ctx, m, ref.Tokens, placed, compare.add); err != nil {
		return c, nil, err
	}
	if ref.Greedy != nil {
		ids, err := greedy(ctx, e, runtime.Request{
			Prompt: ref.Tokens, Pictures: pictures, MaxTokens: len(ref.Greedy), IgnoreEOS: true,
			Draft: runtime.Draft{Mode: runtime.DraftOff},
		})
		if err != nil {
			return c, nil, err
		}
		equal := slices.Equal(ids, ref.Greedy)
		greedyEqual = &equal
	}
	return compare.result(), greedyEqual, nil
}

// forward passes the logits of every position to row, in order. The model's context length does not apply.
func forward(
	ctx context.Context, m *load.Model, tokens []int32, pictures *pictures.Prompt, each func(logits []float32),
) error {
	seq := cache.NewSequence(m.Kinds)
	defer func() {
		_ = m.Thread.Do(context.Background(), func() error { seq.Free(); pictures.Free(); return nil })
	}()
	for i := 0; pictures != nil && i < len(pictures.Distinct); i++ {
		if err := m.Pictures.Encode(ctx, pictures.Distinct[i], m.Do); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(tokens, verifyChunk) {
		var logits []float32
		if err := m.Do(ctx, func() error {
			part := nn.Part{Seq: seq, Tokens: chunk, All: true, Text: len(tokens)}
			hidden := models.Forward(m.Thread, m.Target, pictures.Part(part, seq.Offset()))
			logits = m.Target.Head(hidden).Float32s()
			return nil
		}); err != nil {
			return err
		}
		for r := range slices.Chunk(logits, len(logits)/len(chunk)) {
			each(r)
		}
	}
	return nil
}

// greedy returns the ids that a request generates. Video tokens in the prompt are accepted.
func greedy(ctx context.Context, e *batch.Engine, r runtime.Request) ([]int32, error) {
	if r.MaxTokens == 0 {
		return nil, nil
	}
	var ids []int32
	for event, err := range e.Continue(ctx, r) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, event.IDs...)
	}
	return ids, nil
}

// Probe evaluates a few tokens, and a small picture if the model has a vision tower. Logits and vectors that are not
// finite are an error. It returns the number of tokens.
func Probe(ctx context.Context, m *load.Model) (int, error) {
	tokens := probeTokens(m)
	position := -1
	var bad error
	err := forward(ctx, m, tokens, nil, func(logits []float32) {
		position++
		for i, v := range logits {
			if bad == nil && (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)) {
				bad = fmt.Errorf("the logit of token %d at position %d is %v: %w", i, position, v, runtime.ErrImage)
			}
		}
	})
	if err == nil {
		err = bad
	}
	if err == nil {
		err = m.Pictures.Probe(ctx, m.Do)
	}
	return len(tokens), err
}

// probeTokens returns token ids that are spread over the vocabulary.
func probeTokens(m *load.Model) []int32 {
	facts := m.Processor.Config.Facts()
	tokens := make([]int32, min(8, facts.Context, facts.Vocab))
	for i := range tokens {
		tokens[i] = int32(int64(i) * facts.Vocab / int64(len(tokens)))
	}
	return tokens
}
