package batch

import (
	"context"
	"fmt"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/embed"
)

// Embed implements Embedder. Each input runs as a prompt without generated tokens, in the same batches as other
// requests. One call takes at most half of the slots.
func (e *Engine) Embed(ctx context.Context, r runtime.EmbedRequest) (runtime.Embeddings, error) {
	p := e.model.Processor
	size, err := p.EmbeddingSize()
	if err != nil {
		return runtime.Embeddings{}, err
	}
	run := embed.Runner{
		Modes: p.Pooling.Modes, Size: size, Parallel: e.batcher.maxRunning / 2, Check: e.checkInput, Evaluate: e.evaluate,
	}
	return run.Run(ctx, r)
}

// checkInput returns an error if an input cannot be evaluated.
func (e *Engine) checkInput(ids []int32) error {
	if limit := int(e.model.Processor.Config.Facts().Context); len(ids) > limit {
		return fmt.Errorf("it has %d tokens, the model's context %d: %w", len(ids), limit, runtime.ErrPrompt)
	}
	if err := e.checkTokens(ids); err != nil {
		return err
	}
	if err := e.model.Pictures.CheckNoVideo(ids); err != nil {
		return err
	}
	if e.batcher.memory.tokens(len(ids)) < len(ids) {
		return e.batcher.memory.promptError(len(ids))
	}
	return nil
}

// embedPriority is the priority of embedding inputs: nobody reads along while they are computed.
const embedPriority = -1

// evaluate runs an embedding input and passes its final hidden states to p.
func (e *Engine) evaluate(ctx context.Context, ids []int32, p *embed.Vector) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := newGeneration(ctx, runtime.Request{Prompt: ids, Draft: runtime.Draft{Mode: runtime.DraftOff},
		Priority: embedPriority})
	g.ranks, g.seq, g.tokens, g.pooling, g.started = e.ranks, cache.NewSequence(e.model.Kinds), ids, p, time.Now()
	if err := e.batcher.add(g); err != nil {
		return err
	}
	err := g.out.Each(ctx, func(runtime.Event) bool { return true })
	g.wait(cancel)
	return err
}

// pool passes the hidden states of a step to the embedding inputs in it. hidden has the rows that forward evaluated. It
// runs on the engine's thread.
func pool(plan []batchItem, hidden *mlx.Array) {
	var rows []float32
	for _, s := range plan {
		g := s.g
		if g.pooling == nil {
			continue
		}
		n, end := 1, g.pending() == 0
		if g.pooling.NeedsAllRows() {
			n = s.rows
		} else if !end {
			continue
		}
		width := hidden.Dim(1)
		if rows == nil {
			rows = hidden.Float32s()
		}
		g.pooling.Add(rows[(s.firstSampleRow+1-n)*width:(s.firstSampleRow+1)*width], width)
		if end {
			g.ended = true
			g.out.End(nil)
		}
	}
}
