package batch

import (
	"fmt"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/ranks"
)

// memory bounds the state of running requests: their KV caches and recurrent states. Its fields are set before the
// first step.
type memory struct {
	limit      int64 // bytes for all requests; 0: no limit
	perRequest int64 // bytes for one request: the limit with which the model was loaded
	shape      cache.Shape
	rows       int // most rows of one prompt in a step
}

// admissionTokens is the number of further tokens for which there must be memory when a request is admitted. With less,
// it would soon be preempted.
const admissionTokens = 256

// divideMemory divides the memory that is left after loading the weights. The prefix cache gets its configured size, or
// a quarter. Running requests get the rest, less a step's working set.
func divideMemory(o runtime.Options, m mlx.Memory, working int64) (state, prefixes int64) {
	free := max(m.Budget-m.Active-m.Mapped, m.Budget/8) // the system can evict pages of mapped weights, at a cost
	state, prefixes = o.Memory, o.PrefixCache
	if prefixes < 0 {
		prefixes = free / 4
	}
	if state == 0 && m.Budget > 0 {
		state = max(free-prefixes-working, free/4)
	}
	return max(state, 0), prefixes
}

// workingSet estimates the memory of a step besides state and weights. rows is the number of rows, sampled the number
// of rows with logits. The factors allow for several activations of the hidden width, three of the widest layer, and
// float32 logits with a sorted copy.
func workingSet(f config.Facts, widest int64, rows, sampled int) int64 {
	return 4 * (int64(rows)*(8*f.Hidden+3*widest) + 4*int64(sampled)*f.Vocab)
}

// assignMemory divides the memory between running requests and the prefix cache. It runs on the engine's thread, after
// the model was built.
func assignMemory(m *load.Model, l *ranks.Leader, o runtime.Options) (memory, *prefixes) {
	mem := memory{shape: m.StateShape(), rows: maxRows}
	if o.Chunk > 0 {
		mem.rows = o.Chunk
	}
	var size int64
	working := workingSet(m.Processor.Config.Facts(), m.Widest, mem.rows, mostSequences(o))
	of := l.Memory(ranks.Measure(m.Thread, m.Weights.Bytes()), m.Stages.StateShares(m.Processor.Config))
	mem.perRequest, size = divideMemory(o, of, working)
	if l != nil && o.Memory > 0 { // it was chosen for this machine; others may have less
		o.Memory = 0
		most, _ := divideMemory(o, of, working)
		mem.perRequest = min(mem.perRequest, most)
	}
	mem.limit = mem.perRequest
	p := newPrefixes(m.Kinds, size)
	p.ranks = l
	l.Attach(m, p.tree)
	return mem, p
}

// tokens returns how many tokens one request can have, up to most.
func (m *memory) tokens(most int) int {
	if m.perRequest <= 0 {
		return most
	}
	return m.shape.Tokens(m.perRequest, most, m.rows)
}

// promptError returns the error for a prompt that leaves no memory for a generated token.
func (m *memory) promptError(prompt int) error {
	return fmt.Errorf("the state of a prompt of %d tokens takes %s, and a request may take %s: %w",
		prompt, megabytes(m.shape.Bytes(prompt+1, m.rows)), megabytes(m.perRequest), runtime.ErrMemory)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
