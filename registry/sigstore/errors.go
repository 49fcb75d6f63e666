package sigstore

import (
	"errors"
	"strings"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// Errors for use with [errors.Is].
var (
	ErrKey      = errors.New("unusable key")      // not a key, or of an unsupported kind
	ErrPassword = errors.New("wrong password")    // for an encrypted private key
	ErrBundle   = errors.New("damaged signature") // not a bundle, or its signature does not match its payload
	// ErrOtherKey: the bundle names another key, and this one does not verify it.
	ErrOtherKey = errors.New("signed by another key")
	ErrSubject  = errors.New("signed for another manifest") // a valid signature of another digest
	// ErrPurpose: a valid signature of another kind of statement, such as an attestation.
	ErrPurpose = errors.New("not a signature")
)

// excerpt shortens foreign text to one line of an error.
func excerpt(s string) string { return clip.Controls(clip.Text(strings.ToValidUTF8(s, "?"), 120)) }
