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

// Embedder is an [Engine] that computes embeddings.
type Embedder interface {
	Engine
	// Embed computes one vector for each input.
	Embed(ctx context.Context, r EmbedRequest) (Embeddings, error)
}

// EmbedRequest describes the embeddings to compute.
type EmbedRequest struct {
	Inputs     [][]int32 `json:"inputs"`               // token ids; each input may be as long as the context
	Dimensions int       `json:"dimensions,omitempty"` // return only the first elements of each vector; 0: all
}

// Embeddings holds vectors of length 1, which are pooled from the model's final hidden states: from that of the last
// token, or as the image configures (see [Processor.EmbeddingSize]).
type Embeddings struct {
	Vectors [][]float32 // one for each input
	Tokens  int         // of all inputs
}

// EmbeddingSize returns the number of elements of the model's embeddings. They are the last token's hidden state,
// unless the image configures another pooling in the files of sentence-transformers: modules.json and the file that it
// names. An error is an ErrEmbedding.
func (p *Processor) EmbeddingSize() (int, error) {
	if p.pooling.err != nil {
		return 0, p.pooling.err
	}
	return int(p.config.Facts().Hidden) * len(p.pooling.modes), nil
}

// EncodeWithin encodes a text like Encode, cut to at most limit tokens. It removes tokens at the end of the text, but
// keeps those that the tokenizer adds around it. cut reports whether it removed any.
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

// Embed implements Embedder. Each input runs as a prompt without generated tokens, in the same batches as other
// requests. One call takes at most half of the slots.
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
	slots := make(chan struct{}, max(1, l.batcher.maxRunning/2))
	var wg sync.WaitGroup
	for i, ids := range r.Inputs {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			v, err := l.embed(ctx, ids, r.Dimensions)
			if err != nil {
				cancel(err) // one failed input fails the call
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

// checkInput returns an error if an input cannot be evaluated.
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

// embed computes the vector of one input.
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

// pool passes the hidden states of a step to the embedding inputs in it. hidden has the rows that forward evaluated. It
// runs on the engine's thread.
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

var errNoEmbedder = errors.New("this engine cannot compute embeddings")

// Embed computes embeddings with an engine. If the engine is no Embedder, the error is an ErrEmbedding.
func Embed(ctx context.Context, e Engine, r EmbedRequest) (Embeddings, error) {
	embedder, ok := e.(Embedder)
	if !ok {
		return Embeddings{}, fmt.Errorf("%w: %w", errNoEmbedder, ErrEmbedding)
	}
	return embedder.Embed(ctx, r)
}
