package runtime

import (
	"errors"
	"fmt"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// ErrPictures reports that a model cannot process the pictures of a request.
var ErrPictures = fault.Register(errors.New("pictures cannot be used"), fault.Kind{
	Name: "runtime.ErrPictures", Means: "a picture is bad, or the model has no vision",
	Rank: fault.Part + 2, Status: fault.Invalid, Wire: "pictures",
})

// Picture is one picture of a prompt.
type Picture struct {
	ID   int    // of its mark [img-ID] in a text
	Name string // used in errors; without one, they use its index
	Data []byte // a PNG, JPEG, GIF, WebP or BMP file
}

// Label returns what errors call the picture with index i.
func (p Picture) Label(i int) string {
	if p.Name != "" {
		return "picture " + p.Name
	}
	return fmt.Sprintf("picture %d", i+1)
}

// PictureError returns an ErrPictures that wraps what is wrong with a picture. label is what the picture is called.
func PictureError(label string, err error) error { return badPicture{fmt.Errorf("%s: %w", label, err)} }

// badPicture is an ErrPictures that wraps what is wrong with a picture.
type badPicture struct{ error }

func (b badPicture) Unwrap() error        { return b.error }
func (b badPicture) Is(target error) bool { return target == ErrPictures }
