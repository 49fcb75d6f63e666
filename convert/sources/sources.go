package sources

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// ErrSource says that a checkpoint cannot be imported.
var ErrSource = errors.New("cannot import")

// Kind is a way in which quantized checkpoints are published.
type Kind struct {
	Name string
	// Find lists the weights of this kind. No weights and no error: the checkpoint has none.
	Find func(c *Checkpoint) (Found, error)
}

// Found is what a kind found.
type Found struct {
	What    string   // for people, one line
	From    []string // the keys and tensors that show it
	Weights []Weight
	Ignored []Ignored
}

// Ignored is a tensor that is not needed.
type Ignored struct {
	safetensors.Source
	Reason string
}

// Weight is a tensor of a plain checkpoint that is packed in this one.
type Weight struct {
	Name   string               // in a plain checkpoint
	Shape  []int64              // of the elements
	DType  safetensors.DType    // BF16, F16 or F32: of the elements where nothing else is asked for
	Format string               // for people: what it is
	Parts  []safetensors.Source // that it is read from, the codes first
	Type   quantize.Type        // our format that holds it exactly; 0 = none does
	Why    string               // none does
	Plain  bool                 // where none does it becomes a plain tensor of DType without being asked; else it is refused
	Rule   string               // the version of the arithmetic that made the codes, as the file says; "" = it does not
	Scales safetensors.DType    // of an affine Type's scales and biases, where that is not DType
	Global float32              // a factor of the whole tensor (nvfp4), which Floats counts in and Codes does not; 0 = none
	Read   Elements
}

// Size is how many bytes of the checkpoint it is read from.
func (w Weight) Size() (n int64) {
	for _, p := range w.Parts {
		n += p.Size()
	}
	return n
}

// Elements reads a weight, its elements in row-major order. Its methods may be called by several goroutines at once.
//
// Begin and count are whole rows where a row has at most [MaxRow] elements, else multiples of 128 or up to a row's end.
type Elements interface {
	// Floats writes elements as float32, little endian; len(dst) is 4*count. What is not finite may come out as it is.
	Floats(dst []byte, begin, count int64) error
	// Codes writes them as groups of the weight's Type, each slice of the bytes that [quantize.Type.GroupSizes] tells for the
	// type of the weight's scales. It is called only where there is one; begin and count are multiples of its group.
	Codes(dst quantize.Blocks, begin, count int64) error
}

// MaxRow is the longest row that is read whole.
const MaxRow = 64 << 10

// Recognized is one thing that was found by reading.
type Recognized struct {
	Kind    string   `json:"kind"`
	What    string   `json:"what"`
	From    []string `json:"from"`
	Tensors int      `json:"tensors"` // weights of that kind
}

// Result is a checkpoint as it would be if it were plain.
type Result struct {
	Weights    []Weight             // sorted by name
	Plain      []safetensors.Source // the tensors that are what they seem, sorted by name
	Ignored    []Ignored            // sorted by name
	Recognized []Recognized
}

// Read finds all weights of a checkpoint.
func Read(c *Checkpoint) (Result, error) {
	var r Result
	names := map[string]string{} // of weights, and what they are
	for _, k := range kinds {
		f, err := k.Find(c)
		if err != nil {
			return Result{}, err
		}
		for _, w := range f.Weights {
			for _, p := range w.Parts {
				if c.taken[p.Name] {
					return Result{}, wrong(p, "it would belong to two weights, %s among them", w.Name)
				}
				c.taken[p.Name] = true
			}
			if other, twice := names[w.Name]; twice {
				return Result{}, wrong(w.Parts[0], "%s is there twice, as %s and as %s", w.Name, other, w.Format)
			}
			names[w.Name] = w.Format
		}
		for _, i := range f.Ignored {
			c.taken[i.Name] = true
		}
		r.Weights, r.Ignored = append(r.Weights, f.Weights...), append(r.Ignored, f.Ignored...)
		if len(f.Weights) > 0 {
			r.Recognized = append(r.Recognized, Recognized{k.Name, f.What, f.From, len(f.Weights)})
		}
	}
	r.Plain = c.Tensors()
	for _, t := range r.Plain {
		if format, twice := names[t.Name]; twice {
			return Result{}, wrong(t, "it is there twice, plain and as %s", format)
		}
	}
	if err := r.joinLatent(); err != nil {
		return Result{}, err
	}
	slices.SortFunc(r.Weights, func(a, b Weight) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Ignored, func(a, b Ignored) int { return cmp.Compare(a.Name, b.Name) })
	return r, c.leftOver(r)
}

// wrong is an error about a tensor.
func wrong(t safetensors.Source, format string, args ...any) error {
	return fmt.Errorf("%s: tensor %s: %w: %w", t.File.Path(), t.Name, ErrSource, fmt.Errorf(format, args...))
}
