package verify

import (
	"context"
	"fmt"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/quality"
)

// KVTypes evaluates one long sequence, with keys and values as the model was opened with and with those of each type,
// and compares the logits after each token. A text is cut after most tokens. The result has rows for each type, in the
// order of positions. It holds the logits of one chunk for all types in memory.
func KVTypes(
	ctx context.Context, m *load.Model, types []runtime.KVType, text string, most int, progress func(done, total int),
) ([][]quality.Row, error) {
	if err := m.Processor.CheckHead(); err != nil {
		return nil, err
	}
	begin, tokens, err := commonTokens(ctx, m.Processor, m.Processor, text)
	if err != nil {
		return nil, err
	}
	tokens = append(begin, tokens...)
	tokens = tokens[:min(len(tokens), most, int(m.Processor.Config.Facts().Context))]
	if len(tokens) < minTextTokens {
		return nil, fmt.Errorf("%d tokens are too few, at least %d are needed: %w", len(tokens), minTextTokens,
			ErrNotComparable)
	}
	sequences := []*cache.Sequence{cache.NewSequence(m.Kinds)}
	for _, t := range types {
		sequences = append(sequences, cache.NewSequence(cache.Packed(m.Kinds, int(t.Bits()))))
	}
	defer func() {
		_ = m.Thread.Do(context.Background(), func() error {
			for _, s := range sequences {
				s.Free()
			}
			return nil
		})
	}()
	rows := make([][]quality.Row, len(types))
	for at := 0; at < len(tokens)-1; at += verifyChunk {
		chunk := tokens[at:min(at+verifyChunk, len(tokens)-1)]
		next := tokens[at+1:][:len(chunk)]
		var plain []float32
		for i, seq := range sequences {
			var logits []float32
			if err := m.Do(ctx, func() error {
				x := models.Forward(m.Thread, m.Target, nn.Part{Seq: seq, Tokens: chunk, All: true, Text: len(tokens)})
				logits = m.Target.Head(x).Float32s()
				return nil
			}); err != nil {
				return nil, err
			}
			if i == 0 {
				plain = logits
				continue
			}
			part := make([]quality.Row, len(chunk))
			if err := compareAll(part, plain, logits, next); err != nil {
				return nil, err
			}
			rows[i-1] = append(rows[i-1], part...)
		}
		if progress != nil {
			progress(at+len(chunk), len(tokens)-1)
		}
	}
	return rows, nil
}
