package jinja

import (
	"math"
	"math/big"

	"github.com/ingotml/ingot/limits"
)

// Limits bound one render. Zero fields mean those of DefaultLimits.
type Limits struct {
	Steps  int64 // evaluated nodes and iterations
	Depth  int   // calls within calls
	Output int64 // bytes of text
	Memory int64 // bytes of all texts, lists and numbers made, whether still in use or not
}

// DefaultLimits returns the limits of a render over variables of a size in bytes, as Size measures it: a constant and a
// multiple of the size, so that long conversations render and a short request cannot ask for much.
func DefaultLimits(size int64) Limits {
	size = min(max(size, 0), math.MaxInt64/64)
	return Limits{
		Steps:  limits.TemplateSteps,
		Depth:  limits.TemplateCalls,
		Output: limits.TemplateOutput + limits.TemplateOutputTimes*size,
		Memory: limits.TemplateMemory + limits.TemplateMemoryTimes*size,
	}
}

// Peak returns the most bytes that a render within the limits holds at a time: what it made, its text, and the text's
// old place while it grows.
func (l Limits) Peak() int64 { return l.Memory + 2*l.Output }

// WithDefaults returns l with the limits for variables of a size where l has none.
func (l Limits) WithDefaults(size int64) Limits {
	d := DefaultLimits(size)
	if l.Steps <= 0 {
		l.Steps = d.Steps
	}
	if l.Depth <= 0 {
		l.Depth = d.Depth
	}
	if l.Output <= 0 {
		l.Output = d.Output
	}
	if l.Memory <= 0 {
		l.Memory = d.Memory
	}
	return l
}

// Size returns about how many bytes a value takes: its texts, and a constant for every value. It takes time in
// proportion. Values that a request does not bring (functions, macros) count as that constant.
func Size(v Value) int64 {
	n := int64(valueSize)
	switch v := v.(type) {
	case string:
		n += int64(len(v))
	case Markup:
		n += int64(len(v))
	case Bytes:
		n += int64(len(v))
	case *big.Int:
		n += int64(v.BitLen() / 8)
	case *List:
		for _, x := range v.Items {
			n += Size(x)
		}
	case *Tuple:
		for _, x := range v.Items {
			n += Size(x)
		}
	case *Dict:
		if v == nil {
			return 0
		}
		for i := range v.Len() {
			n += Size(v.keys[i]) + Size(v.values[i])
		}
	}
	return n
}
