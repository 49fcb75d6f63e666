package embed

import (
	"context"
	"fmt"
	"sync"

	"github.com/ingotml/ingot/arch/pooling"
	"github.com/ingotml/ingot/runtime"
)

// Runner computes the embeddings of a request.
type Runner struct {
	Modes    []pooling.Mode
	Size     int // elements of a vector
	Parallel int // inputs that are evaluated at once
	// Check returns an error if an input cannot be evaluated.
	Check func(input []int32) error
	// Evaluate passes the final hidden states of an input to its pooling.
	Evaluate func(ctx context.Context, input []int32, p *Vector) error
}

// Run computes the vectors. One input that fails ends the others.
func (m *Runner) Run(ctx context.Context, r runtime.EmbedRequest) (runtime.Embeddings, error) {
	e := runtime.Embeddings{Vectors: make([][]float32, len(r.Inputs))}
	if r.Dimensions < 0 || r.Dimensions > m.Size {
		return runtime.Embeddings{}, fmt.Errorf("%d dimensions, the model's vectors have %d: %w", r.Dimensions, m.Size,
			runtime.ErrEmbedding)
	}
	for i, ids := range r.Inputs {
		if err := m.Check(ids); err != nil {
			return runtime.Embeddings{}, fmt.Errorf("input %d: %w", i, err)
		}
		e.Tokens += len(ids)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, max(1, m.Parallel))
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
			v, err := m.vector(ctx, ids, r.Dimensions)
			if err != nil {
				cancel(err) // one failed input fails the call
			}
			e.Vectors[i] = v
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return runtime.Embeddings{}, context.Cause(ctx)
	}
	return e, nil
}

// vector computes the vector of one input.
func (m *Runner) vector(ctx context.Context, input []int32, dimensions int) ([]float32, error) {
	p := &Vector{modes: m.Modes}
	if err := m.Evaluate(ctx, input, p); err != nil {
		return nil, err
	}
	return p.Elements(dimensions)
}
