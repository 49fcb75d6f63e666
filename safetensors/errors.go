package safetensors

import (
	"errors"
	"strconv"
)

// What can be wrong with one file.
var (
	ErrHeader         = errors.New("invalid header")       // not the JSON that the format asks for
	ErrHeaderTooLarge = errors.New("header too large")     // longer than MaxHeaderSize
	ErrTruncated      = errors.New("truncated file")       // shorter than its header says, at opening or later
	ErrTrailing       = errors.New("bytes after the data") // longer than its header says
	ErrName           = errors.New("invalid tensor name")
	ErrDuplicate      = errors.New("duplicate")
	ErrDType          = errors.New("unknown dtype")
	ErrShape          = errors.New("invalid shape")
	ErrOffsets        = errors.New("invalid data_offsets") // begin > end, or not what dtype and shape ask for
	ErrOverlap        = errors.New("overlapping data")
	ErrHole           = errors.New("hole in the data")
	ErrDataSize       = errors.New("wrong amount of data") // a reader given to Write
)

// What can be wrong with a checkpoint.
var (
	ErrIndex      = errors.New("invalid index")
	ErrIncomplete = errors.New("source model is incomplete")
	ErrAmbiguous  = errors.New("ambiguous weights")
	ErrNoWeights  = errors.New("no safetensors weights")
)

// maxQuoted bounds what a message repeats of a file, in bytes.
const maxQuoted = 120

// quote makes text from a file safe to print: one line, and not all of a hostile header.
func quote(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}
