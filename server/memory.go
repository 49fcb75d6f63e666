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

// room is what a model gets: its weights, the state of what it reads and says, and what it keeps of past requests. The
// last two are each an eighth of what the weights leave, so that several models have room, but no more than a request of the model's
// whole context takes.
func (s *Server) room(m *model) room {
	var r room
	for _, l := range m.entry.Image.Layers {
		r.weights += l.Size
	}
	whole := m.StateBytes(m.Context(), s.opts.Float32)
	share := max((s.opts.Memory-r.weights-workingSet)/8, 0)
	r.state = min(max(m.StateBytes(min(m.Context(), leastContext), s.opts.Float32), share), whole)
	if s.opts.Context > 0 {
		r.state = m.StateBytes(s.opts.Context, s.opts.Float32)
	}
	r.cache = min(share, whole)
	if s.opts.CacheSize >= 0 {
		r.cache = s.opts.CacheSize
	}
	return r
}
