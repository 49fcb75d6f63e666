package value

import (
	"math"
	"math/big"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// Limits bound one render. Zero fields mean DefaultLimits.
type Limits struct {
	Steps  int64         // evaluated nodes and iterations, and what takes as long
	Depth  int           // nesting of calls
	Output int64         // bytes of text
	Memory int64         // bytes of all strings, lists and numbers allocated, including garbage
	Time   time.Duration // of computing, in case that steps count too little
}

// DefaultLimits returns the limits for variables with this Size: a constant plus a multiple of the size. So long
// conversations render, but a short request cannot use much memory.
func DefaultLimits(size int64) Limits {
	size = min(max(size, 0), math.MaxInt64/128)
	return Limits{
		Steps:  min(limits.TemplateSteps, limits.TemplateStepsLeast+limits.TemplateStepsPerByte*size),
		Depth:  limits.TemplateCalls,
		Output: limits.TemplateOutput + limits.TemplateOutputTimes*size,
		Memory: limits.TemplateMemory + limits.TemplateMemoryTimes*size,
		Time:   limits.RenderTime * time.Second,
	}
}

// Peak returns the maximum memory in bytes of a render within the limits: its allocations, its output, and the previous
// buffer of the output while that grows.
func (l Limits) Peak() int64 { return l.Memory + 2*l.Output }

// WithDefaults replaces zero fields by those of DefaultLimits(size).
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
	if l.Time <= 0 {
		l.Time = d.Time
	}
	return l
}

// Size estimates the memory of a value in bytes: its strings, and a constant per value. Time is linear in the number of
// values. Values that cannot come from a request (functions, macros) count as one constant.
func Size(v Value) int64 {
	n := int64(Overhead)
	switch v := v.(type) {
	case string:
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
