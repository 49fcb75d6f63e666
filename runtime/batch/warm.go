package batch

import (
	"context"
	"errors"

	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/runtime"
)

// Warm evaluates the beginning of prompts and leaves its state in the prefix cache, for all owners, with a snapshot at
// its end for layers whose state cannot be truncated.
func (e *Engine) Warm(ctx context.Context, ids []int32) (stats runtime.Stats, err error) {
	if len(ids) == 0 {
		return stats, errors.New("the prompt is empty")
	}
	r := runtime.Request{Owner: prefix.Public, Prompt: ids, MaxTokens: 1, IgnoreEOS: true,
		Draft: runtime.Draft{Mode: runtime.DraftOff}}
	for event, err := range e.Generate(ctx, r) {
		if err != nil {
			return stats, err
		}
		stats = event.Stats
	}
	return stats, nil
}
