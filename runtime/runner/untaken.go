package runner

import (
	"fmt"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/internal/stream"
)

// untaken bounds the messages of a request that its caller does not take, such as the tokens for a client that reads
// more slowly than the model generates. What a caller has asked for at once, vectors and the scores of a prompt, is
// bounded by the request.
var untaken = stream.Bound[toParent]{
	Most: limits.UntakenEvents,
	Size: func(m toParent) int64 {
		const message, score, top = 512, 32, 8
		if m.Event == nil {
			return 0
		}
		n := int64(message + len(m.Event.Text))
		for _, l := range m.Event.LogProbs {
			n += score + top*int64(len(l.Top))
		}
		return n
	},
	Err: fmt.Errorf("the client reads too slowly, more than %d bytes of events wait for it: %w", limits.UntakenEvents,
		runtime.ErrBusy),
}
