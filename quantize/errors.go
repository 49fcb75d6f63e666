package quantize

import (
	"errors"
	"fmt"
	"strconv"
)

var (
	// ErrType reports an unknown format name.
	ErrType = errors.New("unknown quantization type")
	// ErrDType reports an element type that a format or cast does not accept.
	ErrDType = errors.New("unsupported element type")
	// ErrShape reports a shape that cannot be encoded.
	ErrShape = errors.New("unsupported shape")
	// ErrLength reports slices whose lengths do not match.
	ErrLength = errors.New("wrong length")
	// ErrNotFinite reports a NaN or infinity in a source.
	ErrNotFinite = errors.New("not a finite number")
	// ErrOverflow reports a finite source number outside the target's range.
	ErrOverflow = errors.New("too large")
)

// ElementError is an error about one element of a source.
type ElementError struct {
	Index int64   // from the start of the given slice
	Value float64 // of the element
	Err   error   // ErrNotFinite, or wraps ErrOverflow
}

func (e *ElementError) Error() string {
	return fmt.Sprintf("element %d is %s: %v", e.Index, strconv.FormatFloat(e.Value, 'g', 6, 64), e.Err)
}

func (e *ElementError) Unwrap() error { return e.Err }
