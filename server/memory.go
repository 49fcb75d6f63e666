package server

import (
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
)

// machineMemory is the default memory limit for all models.
func machineMemory() int64 { return runtime.MachineMemory() }

const (
	minContext = 4096      // tokens of KV cache that a model gets at least, up to its context length
	workingSet = 256 << 20 // bytes that a process takes in addition to weights and KV caches
)

// memoryBudget is the memory of a loaded model, in bytes.
type memoryBudget struct {
	weights int64
	state   int64 // KV caches of running requests
	cache   int64 // prefix cache
}

func (r memoryBudget) total() int64 { return r.weights + r.state + r.cache + workingSet }

// withSlack adds to the exact size of a KV cache: storage grows in steps, and sliding windows also hold a step's
// tokens.
func withSlack(n int64) int64 { return n + n/4 + 32<<20 }

// ranks returns how many ranks divide a model.
func (s *Server) ranks(e *store.Entry) int {
	if s.opts.Ranks == nil {
		return 1
	}
	return s.opts.Ranks(e)
}

// memoryBudget divides the memory of a model: KV caches of running requests get a quarter of what the weights leave,
// and the prefix cache an eighth, so that several models fit. Neither gets more than one request with the full context
// needs. Options.Context and Options.CacheSize override this.
func (s *Server) memoryBudget(m *Model) memoryBudget {
	var r memoryBudget
	for _, l := range m.Entry.Image.Layers {
		r.weights += l.Size
	}
	r.weights /= int64(s.ranks(m.Entry)) // the part of this machine
	bytes := func(tokens int) int64 { return withSlack(m.StateBytes(tokens, s.opts.Float32, s.opts.KV)) }
	free := max(s.opts.Memory-r.weights-workingSet, 0)
	whole := bytes(m.Context())
	r.state = min(max(bytes(min(m.Context(), minContext)), free/4), whole)
	if s.opts.Context > 0 {
		r.state = bytes(s.opts.Context)
	}
	r.cache = min(free/8, whole)
	if s.opts.CacheSize >= 0 {
		r.cache = s.opts.CacheSize
	}
	return r
}
