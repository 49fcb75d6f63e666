package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime/internal/stream"
)

// Embedder is an [Engine] that makes vectors of texts.
type Embedder interface {
	Engine
	// Embed gives a vector for each input.
	Embed(ctx context.Context, r EmbedRequest) (Embeddings, error)
}

// EmbedRequest is what to make vectors of.
type EmbedRequest struct {
	Inputs     [][]int32 `json:"inputs"`               // token ids, taken as they are; each may be as long as the context
	Dimensions int       `json:"dimensions,omitempty"` // so many elements of each vector, the first ones; 0: all
}

// Embeddings are vectors of length 1, made of the model's final hidden states: of the last token's, or as the image says (see
// [Processor.EmbeddingSize]).
type Embeddings struct {
	Vectors [][]float32 // one for each input
	Tokens  int         // of all inputs
}

// EmbeddingSize is the number of elements of the model's embeddings, which an image of sentence-transformers may make otherwise than of the last
// token: by its modules.json and the file that this names. An error is an ErrEmbedding.
func (p *Processor) EmbeddingSize() (int, error) {
	if p.pooling.err != nil {
		return 0, p.pooling.err
	}
	return int(p.config.Facts().Hidden) * len(p.pooling.modes), nil
}

// EncodeWithin is Encode, cut to at most limit tokens: of the text's own the last ones go, what the tokenizer puts around it
// stays. cut tells whether any had to.
func (p *Processor) EncodeWithin(text string, limit int) (ids []int32, cut bool, err error) {
	ids, err = p.Encode(text)
	if err != nil || len(ids) <= limit {
		return ids, false, err
	}
	own, err := p.encode(text, false)
	if err != nil {
		return nil, false, err
	}
	around := len(ids) - len(own)
	if around < 0 || around > limit {
		return ids[:max(limit, 0)], true, nil
	}
	before := 0
	for before < around && !slices.Equal(ids[before:before+len(own)], own) {
		before++
	}
	return slices.Concat(ids[:before], own[:limit-around], ids[before+len(own):]), true, nil
}

// Embed implements Embedder. Inputs run beside other requests, each as a prompt that nothing is said after: several in one step, of which
// those who speak wait for no more than for any prompt. At most half of the places are taken by one call.
func (l *Local) Embed(ctx context.Context, r EmbedRequest) (Embeddings, error) {
	e := Embeddings{Vectors: make([][]float32, len(r.Inputs))}
	size, err := l.EmbeddingSize()
	if err != nil {
		return Embeddings{}, err
	}
	if r.Dimensions < 0 || r.Dimensions > size {
		return Embeddings{}, fmt.Errorf("%d dimensions, the model's vectors have %d: %w", r.Dimensions, size, ErrEmbedding)
	}
	for i, ids := range r.Inputs {
		if err := l.checkInput(ids); err != nil {
			return Embeddings{}, fmt.Errorf("input %d: %w", i, err)
		}
		e.Tokens += len(ids)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, max(1, l.batcher.maxRunning/2))
	var wg sync.WaitGroup
	for i, ids := range r.Inputs {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-places }()
			v, err := l.embed(ctx, ids, r.Dimensions)
			if err != nil {
				cancel(err) // the others are of no use without it
			}
			e.Vectors[i] = v
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return Embeddings{}, context.Cause(ctx)
	}
	return e, nil
}

// checkInput tells what is wrong with an input.
func (l *Local) checkInput(ids []int32) error {
	if limit := int(l.config.Facts().Context); len(ids) > limit {
		return fmt.Errorf("it has %d tokens, the model's context %d: %w", len(ids), limit, ErrPrompt)
	}
	if err := l.checkTokens(ids); err != nil {
		return err
	}
	if err := l.checkNoVideo(ids); err != nil {
		return err
	}
	if l.batcher.memory.tokens(len(ids)) < len(ids) {
		return l.batcher.memory.promptError(len(ids))
	}
	return nil
}

// embed gives the vector of one input.
func (l *Local) embed(ctx context.Context, ids []int32, dimensions int) ([]float32, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := &generation{
		Local:   l,
		ctx:     ctx,
		request: Request{Prompt: ids, Draft: Draft{Mode: DraftOff}},
		out:     stream.New[Event](),
		freed:   make(chan struct{}),
		seq:     cache.NewSequence(l.kinds),
		tokens:  ids,
		pooling: &poolState{modes: l.pooling.modes},
	}
	if err := l.batcher.add(g); err != nil {
		return nil, err
	}
	err := g.out.Each(ctx, func(Event) bool { return true })
	g.wait(cancel)
	if err != nil {
		return nil, err
	}
	return g.pooling.vector(dimensions)
}

// pool takes what a step tells of inputs, from the hidden states of its wanted rows. It runs on the engine's thread.
func (b *batcher) pool(plan []batchItem, hidden *mlx.Array) {
	var rows []float32
	for _, s := range plan {
		g := s.g
		if g.pooling == nil {
			continue
		}
		n, end := 1, g.pending() == 0
		if g.pooling.needsAllRows() {
			n = s.rows
		} else if !end {
			continue
		}
		width := hidden.Dim(1)
		if rows == nil {
			rows = hidden.Float32s()
		}
		g.pooling.add(rows[(s.firstSampleRow+1-n)*width:(s.firstSampleRow+1)*width], width)
		if end {
			g.ended = true
			g.out.End(nil)
		}
	}
}

var errNoEmbedder = errors.New("this engine makes no embeddings")

// Embed asks an engine for embeddings; one that makes none gives an ErrEmbedding.
func Embed(ctx context.Context, e Engine, r EmbedRequest) (Embeddings, error) {
	embedder, ok := e.(Embedder)
	if !ok {
		return Embeddings{}, fmt.Errorf("%w: %w", errNoEmbedder, ErrEmbedding)
	}
	return embedder.Embed(ctx, r)
}
