package quantize

import (
	"errors"
	"fmt"
	"strconv"
)

var (
	// ErrType says that a name is that of no format.
	ErrType = errors.New("unknown quantization type")
	// ErrDType says that a format or a cast does not take elements of this type.
	ErrDType = errors.New("unsupported element type")
	// ErrShape says that a tensor of this shape cannot be coded.
	ErrShape = errors.New("unsupported shape")
	// ErrLength says that slices do not fit each other.
	ErrLength = errors.New("wrong length")
	// ErrNotFinite says that a source holds NaN or an infinity.
	ErrNotFinite = errors.New("not a finite number")
	// ErrOverflow says that a finite number of the source is beyond the range of the target.
	ErrOverflow = errors.New("too large")
)

// ElementError is about one element of a source.
type ElementError struct {
	Index int64   // counted from the start of the slice that was given
	Value float64 // of the element
	Err   error   // ErrNotFinite, or one that wraps ErrOverflow
}

func (e *ElementError) Error() string {
	return fmt.Sprintf("element %d is %s: %v", e.Index, strconv.FormatFloat(e.Value, 'g', 6, 64), e.Err)
}

func (e *ElementError) Unwrap() error { return e.Err }
