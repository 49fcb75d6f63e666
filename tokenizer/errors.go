package tokenizer

import "github.com/ingotml/ingot/tokenizer/fault"

// The kinds of errors that the errors of this package wrap.
var (
	// ErrInvalid: the file violates its format or is inconsistent.
	ErrInvalid = fault.ErrInvalid
	// ErrUnsupported: the file is valid but needs something that this package does not implement.
	ErrUnsupported = fault.ErrUnsupported
	// ErrTimeout: the tokenizer takes too long on this text.
	ErrTimeout = fault.ErrTimeout
	// ErrToken: the vocabulary cannot represent the text or does not have the id.
	ErrToken = fault.ErrToken
)
