package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// ErrEmbedding reports that a model cannot compute an embedding, or not the requested one.
var ErrEmbedding = fault.Register(errors.New("no embedding"), fault.Kind{
	Name: "runtime.ErrEmbedding", Means: "the model cannot compute an embedding, or not the requested one",
	Rank: fault.Part + 4, Status: fault.Invalid, Wire: "embedding",
})

// ErrNoHead reports that a model has no output head: it computes embeddings, but no text and no logits.
var ErrNoHead = fault.Register(errors.New("the model has no output head"), fault.Kind{
	Name: "runtime.ErrNoHead", Means: "the model computes embeddings only, and text or logits were asked for",
	Rank: fault.Part + 7, Status: fault.Invalid, Wire: "head",
	Remedy: "`ingot serve` and its /api/embed and /v1/embeddings compute embeddings",
})

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
// token, or as the image configures (see EmbeddingSize of runtime/processor).
type Embeddings struct {
	Vectors [][]float32 // one for each input
	Tokens  int         // of all inputs
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
