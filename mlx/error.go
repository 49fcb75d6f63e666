package mlx

import (
	"errors"

	"github.com/ingotml/ingot/internal/limits/fault"
)

var (
	// ErrNoCgo is returned by Open if the program cannot load the engine.
	ErrNoCgo = errors.New("this build of ingot cannot load the MLX engine: it was built without cgo")
	// ErrOutOfMemory is wrapped by every Error of an array that does not fit in the memory budget.
	ErrOutOfMemory = fault.Register(errors.New("out of memory"), fault.Kind{
		Name: "mlx.ErrOutOfMemory", Means: "an array does not fit in the memory budget",
		Rank: fault.Resource + 1, Wire: "memory",
	})
	// ErrClosed is returned by Do after Close.
	ErrClosed = errors.New("the engine is closed")
	// ErrVersion is returned by Open if the library's version does not match the bridge or this program.
	ErrVersion = errors.New("wrong engine version")
)

// Error is a failed operation. Inside Do it is the value of a panic.
type Error struct {
	Message string // names the operation and the types and shapes of its arguments
	kind    error
}

func (e *Error) Error() string { return "mlx: " + e.Message }

// Unwrap returns ErrOutOfMemory if that is the cause.
func (e *Error) Unwrap() error { return e.kind }
