package arch

import (
	"fmt"
	"strings"
)

// ProblemKind says what is wrong with a tensor.
type ProblemKind string

// What can be wrong with a tensor.
const (
	WrongShape ProblemKind = "wrong shape"
	WrongType  ProblemKind = "wrong type"
	Absent     ProblemKind = "absent"
	Unknown    ProblemKind = "unknown"
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

// maxListed bounds how many problems a message spells out: a wrong configuration makes every tensor one.
const maxListed = 16

// Error has a first line that is complete by itself. Where there is more than one problem, further lines list them.
func (e *TableError) Error() string {
	first := e.Problems[0].String()
	if len(e.Problems) == 1 {
		return first
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s (the first of %d problems: %s)", first, len(e.Problems), e.counts())
	for i, p := range e.Problems[1:] {
		if i+1 == maxListed {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Problems)-maxListed)
			break
		}
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

func (e *TableError) counts() string {
	var out []string
	for _, kind := range []ProblemKind{WrongShape, WrongType, Absent, Unknown} {
		n := 0
		for _, p := range e.Problems {
			if p.Kind == kind {
				n++
			}
		}
		if n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(out, ", ")
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
