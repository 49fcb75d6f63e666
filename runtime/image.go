package runtime

import (
	"errors"
	"io/fs"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// OfImage makes an error about the contents of a model's image an [ErrImage], so that a client learns that no request
// to the model can succeed. An error that says more already stays, and one of the system. The message is the same.
func OfImage(err error) error {
	var system *fs.PathError
	if err == nil || errors.Is(err, ErrImage) || errors.As(err, &system) {
		return err
	}
	if status, _ := fault.Status(err); status != 0 {
		return err
	}
	return imageError{err}
}

type imageError struct{ error }

func (e imageError) Unwrap() []error { return []error{e.error, ErrImage} }
