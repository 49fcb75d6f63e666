package server

import (
	"sort"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/divide"
	"github.com/ingotml/ingot/runtime/fit"
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

// ownWeights returns the bytes of a model that this machine loads: of a divided model the part of rank 0, as planned
// for machines that are all alike. Rank 0 has the files and the draft whole.
func (s *Server) ownWeights(m *Model) (n int64) {
	for _, l := range m.Entry.Image.Layers {
		n += l.Size
	}
	ranks := s.ranks(m.Entry)
	if ranks == 1 {
		return n
	}
	in := divide.Input{
		Model: m.Config, Sizes: divide.Sizes(m.Entry.Image), Machines: make([]divide.Machine, ranks),
		Mode: s.opts.Parallel, Link: s.opts.Link, Use: fit.Use{Float32s: s.opts.Float32, KV: s.opts.KV},
	}
	plan, err := divide.Make(in)
	if err != nil {
		return n / int64(ranks) // the model does not divide: loading it says so
	}
	for _, size := range in.Sizes {
		n -= size
	}
	return n + plan.Ranks[0].Weights
}

// Context returns how many tokens a prompt and its response can have together: the model's context, or what the memory
// for its KV cache holds.
func (s *Server) Context(m *Model) int {
	most, state := m.Context(), s.memoryBudget(m).state
	n := sort.Search(most, func(n int) bool {
		return withSlack(m.StateBytes(n+1, s.opts.Float32, s.opts.KV)) > state
	})
	if n == 0 { // not even one: loading the model says so
		return most
	}
	return n
}

// memoryBudget divides the memory of a model: KV caches of running requests get a quarter of what the weights leave,
// and the prefix cache an eighth, so that several models fit. Neither gets more than one request with the full context
// needs. Options.Context and Options.CacheSize override this.
func (s *Server) memoryBudget(m *Model) memoryBudget {
	r := memoryBudget{weights: m.weights}
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
