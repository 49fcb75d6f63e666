package safetensors

import (
	"errors"
	"strconv"
)

// Errors of a file.
var (
	ErrHeader         = errors.New("invalid header")       // not JSON, or not the JSON that the format requires
	ErrHeaderTooLarge = errors.New("header too large")     // longer than MaxHeaderSize
	ErrTruncated      = errors.New("truncated file")       // shorter than the header requires, when opened or later
	ErrTrailing       = errors.New("bytes after the data") // longer than the header describes
	ErrName           = errors.New("invalid tensor name")
	ErrDuplicate      = errors.New("duplicate")
	ErrDType          = errors.New("unknown dtype")
	ErrShape          = errors.New("invalid shape")
	ErrOffsets        = errors.New("invalid data_offsets") // begin > end, or inconsistent with dtype and shape
	ErrOverlap        = errors.New("overlapping data")
	ErrHole           = errors.New("hole in the data")
	ErrDataSize       = errors.New("wrong amount of data") // of a reader passed to Write
)

// Errors of a checkpoint.
var (
	ErrIndex      = errors.New("invalid index")
	ErrIncomplete = errors.New("source model is incomplete")
	ErrAmbiguous  = errors.New("ambiguous weights")
	ErrNoWeights  = errors.New("no safetensors weights")
	ErrOutside    = errors.New("a link out of the folder")
	ErrTooLong    = errors.New("too long") // a file that is read as a whole
)

// maxQuoted limits how many bytes of a file's text are quoted in a message.
const maxQuoted = 120

// quote makes untrusted text safe to print: on one line, and truncated.
func quote(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}
