package sigstore

import (
	"errors"
	"strings"
)

// Errors that callers tell apart with [errors.Is].
var (
	ErrKey      = errors.New("unusable key")                // not a key, or of a kind that is not supported
	ErrPassword = errors.New("wrong password")              // of an encrypted private key
	ErrBundle   = errors.New("damaged signature")           // bytes that are no bundle, or that do not match their own signature
	ErrOtherKey = errors.New("signed by another key")       // a bundle that says so, and does not verify with this one
	ErrSubject  = errors.New("signed for another manifest") // a good signature over another digest
	ErrPurpose  = errors.New("not a signature")             // a good signature over a statement of another kind, such as an attestation
)

// clip makes foreign text fit into one line of an error.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > 120 {
		s = string(r[:120]) + "..."
	}
	return s
}
