package processor

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/pooling"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
)

// Pooling says how embeddings are pooled from the final hidden states.
type Pooling struct {
	Modes []pooling.Mode
	Err   error // why the model has no embeddings
}

// pooling returns the pooling that the image configures; by default it takes the last token. An invalid configuration
// fails only requests for embeddings: the model can still generate.
func (f Files) pooling() Pooling {
	modes, err := pooling.Read(func(name string) ([]byte, error) { return f.read(manifest.KindFile, name) })
	if err != nil {
		return Pooling{Err: fmt.Errorf("%w: %w", err, runtime.ErrEmbedding)}
	}
	return Pooling{Modes: modes}
}

// CheckHead returns an error if the model computes embeddings only.
func (p *Processor) CheckHead() error {
	if arch.HasHead(p.Config) {
		return nil
	}
	return fmt.Errorf("%s computes embeddings only: %w", p.Config.Facts().Architecture, runtime.ErrNoHead)
}

// EmbeddingSize returns the number of elements of the model's embeddings. They are the last token's hidden state,
// unless the image configures another pooling in the files of sentence-transformers: modules.json and the file that it
// names. An error is an ErrEmbedding.
func (p *Processor) EmbeddingSize() (int, error) {
	if p.Pooling.Err != nil {
		return 0, p.Pooling.Err
	}
	return int(p.Config.Facts().Hidden) * len(p.Pooling.Modes), nil
}
