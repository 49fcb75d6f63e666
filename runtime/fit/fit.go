// Package fit estimates the least memory that a model needs, from its configuration and the size of its weights, before
// any of them is read. Caches take more where there is more.
package fit

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/runtime"
)

// DefaultContext is the number of tokens that memory is predicted for if none is given, or the model's context if that
// is shorter.
const DefaultContext = 4096

// Memory is the memory of a model that runs one sequence, in bytes.
type Memory struct {
	Weights int64 `json:"weights"`
	State   int64 `json:"state"`   // keys, values and recurrent states of the whole context
	Working int64 `json:"working"` // an estimate: activations of a step, and the program with its engine
}

// Total is the sum.
func (m Memory) Total() int64 { return m.Weights + m.State + m.Working }

// Use says how a model runs.
type Use struct {
	Context  int // tokens; 0 = DefaultContext
	Float32s bool
	KV       runtime.KVType
}

// The program and the engine, and the rows that a step of a prompt has at most.
const (
	program   = 256 << 20
	chunkRows = 512
)

// Need predicts the memory of a model whose weights have the given size.
func Need(m arch.Model, weights int64, u Use) Memory {
	return Memory{
		Weights: weights, State: State(m, ContextOf(m, u), u.Float32s, u.KV), Working: program + Working(m, u),
	}
}

// Working estimates the memory of a step besides weights and state.
func Working(m arch.Model, u Use) int64 {
	f := m.Facts()
	rows := min(int64(ContextOf(m, u)), chunkRows)
	return 4 * (rows*(8*f.Hidden+3*widest(m)) + 4*f.Vocab)
}

// ContextOf returns the number of tokens that memory is predicted for.
func ContextOf(m arch.Model, u Use) int {
	context := u.Context
	if context == 0 {
		context = DefaultContext
	}
	if most := m.Facts().Context; most > 0 {
		context = int(min(int64(context), most))
	}
	return context
}

// State returns the size of the state of a sequence with the given number of tokens.
func State(m arch.Model, tokens int, float32s bool, kv runtime.KVType) int64 {
	each := int64(2)
	if float32s {
		each = 4
	}
	fixed := arch.StateElements(m, 0)
	n := arch.StateElements(m, int64(tokens)) - fixed
	if bits := kv.Bits(); bits > 0 {
		return each*fixed + n*(bits+1)/8 // a group's scale and bias take one bit per element
	}
	return each * (fixed + n)
}

// widest returns the rows of the widest weight matrix, except for those of the vocabulary.
func widest(m arch.Model) (rows int64) {
	vocab := m.Facts().Vocab
	for _, s := range m.Table().Specs {
		if n := len(s.Shape); n > 1 && s.Shape[n-2] != vocab {
			rows = max(rows, s.Shape[n-2])
		}
	}
	return rows
}
