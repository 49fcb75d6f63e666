package mlx

import "errors"

var (
	// ErrNoCgo is given by Open where the program cannot load the engine.
	ErrNoCgo = errors.New("this build of ingot cannot load the MLX engine: it was built without cgo")
	// ErrOutOfMemory is under every Error of an array that the memory budget does not leave room for.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrClosed is given by Do after Close.
	ErrClosed = errors.New("the engine is closed")
	// ErrVersion is given by Open for a library of another version than the bridge was written for.
	ErrVersion = errors.New("wrong engine version")
)

// Error is an operation that failed; inside Do it is the value of a panic.
type Error struct {
	Message string // names the operation and the types and shapes it was given
	kind    error
}

func (e *Error) Error() string { return "mlx: " + e.Message }

// Unwrap gives ErrOutOfMemory where that is the reason.
func (e *Error) Unwrap() error { return e.kind }
