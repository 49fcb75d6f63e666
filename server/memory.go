package server

import "github.com/ingotml/ingot/runtime"

// machineMemory is what models may take where nobody says how much.
func machineMemory() int64 { return runtime.MachineMemory() }

// Tokens of state that a model has room for at least, as far as its context goes, and what else a process takes.
const (
	leastContext = 4096
	workingSet   = 256 << 20
)

// room is the memory of a loaded model, in bytes.
type room struct {
	weights, state, cache int64
}

func (r room) total() int64 { return r.weights + r.state + r.cache + workingSet }

// slack is room beyond a count of tokens: storage grows in steps, and windows hold a step's rows.
func slack(n int64) int64 { return n + n/4 + 32<<20 }

// room is what a model gets: its weights, the state of what it reads and says, and what it keeps of past requests. State gets a fourth of
// what the weights leave and the past an eighth, so that several models have room, but no more than a request of the model's whole
// context takes.
func (s *Server) room(m *model) room {
	var r room
	for _, l := range m.entry.Image.Layers {
		r.weights += l.Size
	}
	bytes := func(tokens int) int64 { return slack(m.StateBytes(tokens, s.opts.Float32, s.opts.KV)) }
	free := max(s.opts.Memory-r.weights-workingSet, 0)
	whole := bytes(m.Context())
	r.state = min(max(bytes(min(m.Context(), leastContext)), free/4), whole)
	if s.opts.Context > 0 {
		r.state = bytes(s.opts.Context)
	}
	r.cache = min(free/8, whole)
	if s.opts.CacheSize >= 0 {
		r.cache = s.opts.CacheSize
	}
	return r
}
