package packed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// ErrSource reports a checkpoint that cannot be imported.
var ErrSource = fault.Register(errors.New("cannot import"), fault.Kind{
	Name: "convert/packed.ErrSource", Means: "a checkpoint cannot be imported",
	Rank: fault.Import + 1, Status: fault.Invalid,
})

// Kind is a packing in which quantized checkpoints are published.
type Kind struct {
	Name string
	// Find returns the checkpoint's weights of this kind. Having none is not an error.
	Find func(c *Checkpoint) (Found, error)
}

// Found is the result of [Kind.Find].
type Found struct {
	What    string   // a description for users, one line
	From    []string // the keys and tensors that revealed it
	Weights []Weight
	Ignored []Ignored
	Notes   []string // what the import changes
}

// Ignored is a tensor that the import does not need.
type Ignored struct {
	safetensors.Source
	Reason  string
	Assumed bool // the reason is not known without data ([Checkpoint.HeadersOnly])
}

// Weight is a packed tensor, described as in a plain checkpoint.
type Weight struct {
	Name    string               // in a plain checkpoint
	Shape   []int64              // of the elements
	DType   safetensors.DType    // default type of the elements: BF16, F16 or F32
	Format  string               // a description for users
	Parts   []safetensors.Source // the tensors that it is read from, the codes first
	Type    quantize.Type        // format that represents the codes exactly; 0 = none
	Why     string               // the reason that there is none
	Plain   bool                 // if there is none, dequantize to DType without being asked; otherwise that is an error
	Rule    string               // quantize rule that made the codes, according to the file; "" = unknown
	Scales  safetensors.DType    // of an affine Type's scales and biases, if it is not DType
	Global  float32              // factor of the whole tensor (nvfp4); Floats applies it, Codes does not; 0 = none
	Several bool                 // it has several such factors, which Floats applies
	Read    Elements
}

// Size returns the number of bytes that the weight is read from.
func (w Weight) Size() (n int64) {
	for _, p := range w.Parts {
		n += p.Size()
	}
	return n
}

// Elements reads a weight's elements in row-major order. Its methods are safe for concurrent use.
//
// The range of begin and count is whole rows if a row has at most [MaxRow] elements. Otherwise both are multiples of
// 128, or the range ends at a row's end.
type Elements interface {
	// Floats writes elements as little-endian float32; len(dst) is 4*count. Values that are not finite may be passed on.
	Floats(dst []byte, begin, count int64) error
	// Codes writes elements as groups of the weight's Type. The slices of dst have the sizes that
	// [quantize.Type.GroupSizes] returns for the type of the weight's scales. Codes is only called if Type is not 0; begin
	// and count are multiples of its group size.
	Codes(dst quantize.Blocks, begin, count int64) error
}

// MaxRow is the maximum number of elements in a row that is read whole.
const MaxRow = 64 << 10

// Recognized is a packing or layout that was detected.
type Recognized struct {
	Kind    string   `json:"kind"`
	What    string   `json:"what"`
	From    []string `json:"from"`
	Tensors int      `json:"tensors"` // number of weights of that kind
}

// Result is a checkpoint presented as a plain one.
type Result struct {
	Weights    []Weight             // sorted by name
	Plain      []safetensors.Source // unpacked tensors, sorted by name
	Ignored    []Ignored            // sorted by name
	Recognized []Recognized
	Notes      []string // what the configuration says and is ignored
	Assumed    []string // what is not known without data, sorted ([Checkpoint.HeadersOnly])
}

// Read finds all weights of a checkpoint.
func Read(c *Checkpoint) (Result, error) {
	var r Result
	if t, problem := c.foreign().Find(c.tensors); problem != "" {
		return Result{}, wrong(t, "%s; %s", problem, usePlain)
	}
	names := make(map[string]string, len(c.tensors)) // formats by weight name
	for _, k := range kinds {
		f, err := k.Find(c)
		if err != nil {
			return Result{}, err
		}
		whose := map[string]string{} // codes by part, of this kind: several weights may be parts of the same ones
		for _, w := range f.Weights {
			for _, p := range w.Parts {
				if c.taken[p.Name] && whose[p.Name] != w.Parts[0].Name {
					return Result{}, wrong(p, "it would belong to two weights; one is %s", w.Name)
				}
				c.taken[p.Name], whose[p.Name] = true, w.Parts[0].Name
			}
			if other, twice := names[w.Name]; twice {
				return Result{}, wrong(w.Parts[0], "%s exists twice, as %s and as %s", w.Name, other, w.Format)
			}
			names[w.Name] = w.Format
		}
		for _, i := range f.Ignored {
			c.taken[i.Name] = true
		}
		r.Ignored = append(r.Ignored, f.Ignored...)
		if r.Weights == nil {
			r.Weights = f.Weights
		} else {
			r.Weights = append(r.Weights, f.Weights...)
		}
		r.Notes = append(r.Notes, f.Notes...)
		if len(f.Weights) > 0 {
			r.Recognized = append(r.Recognized, Recognized{k.Name, f.What, f.From, len(f.Weights)})
		}
	}
	r.Plain = c.Tensors()
	for _, t := range r.Plain {
		if format, twice := names[t.Name]; twice {
			return Result{}, wrong(t, "it exists twice, plain and as %s", format)
		}
	}
	if err := r.Finish(); err != nil {
		return Result{}, err
	}
	r.Assumed = Assumptions(c.assumed)
	note, err := c.leftOver(r)
	if note != "" {
		r.Notes = append(r.Notes, note)
	}
	return r, err
}

// wrong returns an error about a tensor.
func wrong(t safetensors.Source, format string, args ...any) error {
	return fmt.Errorf("%s: tensor %s: %w: %w", t.File.Path(), t.Name, ErrSource, fmt.Errorf(format, args...))
}

// Finish joins the parts of weights that other programs split, and sorts the lists.
func (r *Result) Finish() error {
	if err := r.joinLatent(); err != nil {
		return err
	}
	slices.SortFunc(r.Weights, func(a, b Weight) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Plain, func(a, b safetensors.Source) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Ignored, func(a, b Ignored) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}
