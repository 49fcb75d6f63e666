// Package fit predicts the memory that a model needs for one sequence, from its configuration and the size of its
// weights, before any of them is read. Prefix caches take more where there is more.
package fit

import (
	"cmp"

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
	Working int64 `json:"working"` // activations of a step, and the program with its engine
}

// Total is the sum.
func (m Memory) Total() int64 { return m.Weights + m.State + m.Working }

// Use says how a model runs.
type Use struct {
	Context  int // tokens; 0 = DefaultContext
	Float32s bool
	KV       runtime.KVType

	// What was measured with an engine; 0 = estimates.
	Program   int64   // memory of the program with the engine and no model
	RowBytes  int64   // memory of a row of a prompt while it is evaluated
	Constants int64   // arrays computed from the weights
	Prefill   float64 // tokens per second
}

// The constants of the prediction: what is neither in the model's configuration nor measured.
const (
	program   = 50 << 20 // of which 37 MB are the files of the program and the engine
	perToken  = 100      // bytes that the tokenizer takes for each token of the vocabulary
	kept      = 32 << 20 // most of freed buffers that a CPU's engine keeps, as in package mlx
	holes     = 0.5      // between buffers in use, which the C library does not return, for each kept byte
	growth    = 256      // positions by which a KV cache grows, as in package cache
	mostRows  = 2048     // of a step of a prompt, as in package batch
	rowStep   = 256      // the multiple of these rows
	soloSteps = 3        // seconds of a step of a prompt that is alone
)

// Need predicts the memory of a model whose weights have the given size.
func Need(m arch.Model, weights int64, u Use) Memory {
	return Memory{
		Weights: weights, State: stateOf(m, u),
		Working: cmp.Or(u.Program, program) + perToken*m.Facts().Vocab + Working(m, u),
	}
}

// stateOf returns the size of the state of a sequence, which grows in steps.
func stateOf(m arch.Model, u Use) int64 {
	return State(m, (ContextOf(m, u)+growth-1)/growth*growth, u.Float32s, u.KV)
}

// Working predicts the memory of the engine besides weights and state: the activations of a step, and what it keeps.
func Working(m arch.Model, u Use) int64 {
	each := u.RowBytes
	if each == 0 {
		each = 2 * (4*m.Facts().Hidden + 3*widest(m))
	}
	context := ContextOf(m, u)
	step := rowsOf(context, u.Prefill)
	rows := int64(step) * each
	replaced := stateOf(m, u) * int64(context-step) / int64(context) // storage that the last step outgrows
	freed := min(rows+replaced, kept)
	return u.Constants + rows + freed + int64(holes*float64(freed))
}

// rowsOf returns the rows of a step of a prompt with the given number of tokens, by the speed of prefill.
func rowsOf(context int, prefill float64) int {
	rows := mostRows
	if prefill > 0 {
		rows = min(max(int(prefill*soloSteps)/rowStep*rowStep, rowStep), mostRows)
	}
	return min(rows, context)
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

// widest returns the most elements that a weight matrix makes of a row, except for those of the vocabulary. Of a stack
// of experts, the chosen ones count.
func widest(m arch.Model) (elements int64) {
	vocab := m.Facts().Vocab
	for _, s := range m.Table().Specs {
		n := len(s.Shape)
		if n < 2 || s.Shape[n-2] == vocab {
			continue
		}
		rows := s.Shape[n-2]
		if n > 2 {
			rows *= max(int64(float64(s.Shape[0])*arch.ReadShare(m, s)), 1)
		}
		elements = max(elements, rows)
	}
	return elements
}
