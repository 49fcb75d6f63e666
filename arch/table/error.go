package table

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// ProblemKind is a kind of mismatch between a tensor and the table.
type ProblemKind string

// Kinds of problems.
const (
	WrongShape   ProblemKind = "wrong shape"
	WrongType    ProblemKind = "wrong type"
	MixedLayouts ProblemKind = "mixed layouts"
	Absent       ProblemKind = "absent"
	Unknown      ProblemKind = "unknown"
)

// Problem is one mismatch between a set of tensors and a table.
type Problem struct {
	Kind   ProblemKind
	Tensor string
	File   string // the tensor's actual or expected file; may be empty
	Detail string
}

func (p Problem) String() string {
	s := fmt.Sprintf("tensor %s: %s: %s", clipName(p.Tensor), p.Kind, p.Detail)
	if p.File != "" {
		s = p.File + ": " + s
	}
	return s
}

// TableError lists all mismatches between a set of tensors and a table. It is an [ErrMismatch].
type TableError struct {
	Problems []Problem // never empty
}

// maxListed bounds the tensors of each kind that a message names: with a wrong configuration every tensor is a problem.
const maxListed = 16

// Error returns one line: the first problem in full, then the names of the other tensors by kind of problem.
func (e *TableError) Error() string {
	first := e.Problems[0].String()
	if len(e.Problems) == 1 {
		return first
	}
	return fmt.Sprintf("%s (and %d more: %s)", first, len(e.Problems)-1, e.others())
}

func (e *TableError) others() string {
	var out []string
	for _, kind := range []ProblemKind{WrongShape, WrongType, MixedLayouts, Absent, Unknown} {
		var names []string
		listed, left := 0, 0
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

// Unwrap makes the error an [ErrMismatch].
func (e *TableError) Unwrap() error { return ErrMismatch }

// clipName shortens and quotes a tensor's name, which may hold any character, so that it stays on one line.
func clipName(s string) string {
	s = clip.Text(s, 200)
	q := fmt.Sprintf("%q", s)
	if q[1:len(q)-1] == s {
		return s
	}
	return q
}
