package arch

import (
	"fmt"
	"strings"
)

// ProblemKind says what is wrong with a tensor.
type ProblemKind string

// What can be wrong with a tensor.
const (
	WrongShape   ProblemKind = "wrong shape"
	WrongType    ProblemKind = "wrong type"
	MixedLayouts ProblemKind = "mixed layouts"
	Absent       ProblemKind = "absent"
	Unknown      ProblemKind = "unknown"
)

// Problem is one thing that is wrong with a set of tensors.
type Problem struct {
	Kind   ProblemKind
	Tensor string
	File   string // where the tensor is or should be; may be empty
	Detail string
}

func (p Problem) String() string {
	s := fmt.Sprintf("tensor %s: %s: %s", clipName(p.Tensor), p.Kind, p.Detail)
	if p.File != "" {
		s = p.File + ": " + s
	}
	return s
}

// TableError is all that is wrong with a set of tensors. It is an [ErrTable].
type TableError struct {
	Problems []Problem // never empty
}

// maxListed bounds how many tensors a message names: a wrong configuration makes every tensor a problem.
const maxListed = 16

// Error is one line: the first problem in full, then the names of the other tensors by what is wrong with them.
func (e *TableError) Error() string {
	first := e.Problems[0].String()
	if len(e.Problems) == 1 {
		return first
	}
	return fmt.Sprintf("%s (and %d more: %s)", first, len(e.Problems)-1, e.others())
}

func (e *TableError) others() string {
	var out []string
	listed := 0
	for _, kind := range []ProblemKind{WrongShape, WrongType, MixedLayouts, Absent, Unknown} {
		var names []string
		left := 0
		for _, p := range e.Problems[1:] {
			switch {
			case p.Kind != kind:
			case listed == maxListed:
				left++
			default:
				names = append(names, clipName(p.Tensor))
				listed++
			}
		}
		if left > 0 {
			names = append(names, fmt.Sprintf("%d others", left))
		}
		if len(names) > 0 {
			out = append(out, fmt.Sprintf("%s: %s", kind, strings.Join(names, ", ")))
		}
	}
	return strings.Join(out, "; ")
}

// Unwrap makes the error an [ErrTable].
func (e *TableError) Unwrap() error { return ErrTable }

// clipName keeps a tensor's name, which may hold any character, on one line.
func clipName(s string) string {
	const limit = 200
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "..."
	}
	q := fmt.Sprintf("%q", s)
	if q[1:len(q)-1] == s {
		return s
	}
	return q
}
