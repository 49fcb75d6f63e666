package processor

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/embed"
)

// Pooling says how embeddings are pooled from the final hidden states.
type Pooling struct {
	Modes []embed.Mode
	Err   error // why the model has no embeddings
}

// Files of sentence-transformers: its list of modules, and the configuration of the Pooling module.
const (
	modulesName    = "modules.json"
	defaultPooling = "1_Pooling/config.json" // if there is no list
)

// pooling returns the pooling that the image configures; by default it takes the last token. An invalid configuration
// fails only requests for embeddings: the model can still generate.
func (f Files) pooling() Pooling {
	modes, err := f.poolModes()
	if err != nil {
		return Pooling{Err: fmt.Errorf("%w: %w", err, runtime.ErrEmbedding)}
	}
	return Pooling{Modes: modes}
}

func (f Files) poolModes() ([]embed.Mode, error) {
	b, err := f.read(manifest.KindFile, modulesName)
	if err != nil {
		return nil, err
	}
	name := defaultPooling
	if b != nil {
		if name, err = embed.PoolingConfig(b); err != nil {
			return nil, fmt.Errorf("%s: %w", modulesName, err)
		}
	}
	config, err := f.read(manifest.KindFile, name)
	switch {
	case err != nil:
		return nil, err
	case config == nil && b == nil:
		return []embed.Mode{embed.Last}, nil
	case config == nil:
		return nil, fmt.Errorf("%s, which %s names, is not in the image", name, modulesName)
	}
	modes, err := embed.ParsePooling(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return modes, nil
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
