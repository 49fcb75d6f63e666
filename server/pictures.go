package server

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/wire"
)

// PictureNote returns what stands for a picture that the model cannot see, "" if it can. The history of a conversation
// goes on with the note; a picture in the newest message, which the client wants an answer to, is an error.
func (m *Model) PictureNote(newest bool) (note string, err error) {
	if m.CheckPictures() == nil {
		return "", nil
	}
	if newest {
		return "", wire.BadRequest("this model cannot see pictures: remove the picture, or use a vision model")
	}
	return Omitted("image", "this model cannot see pictures"), nil
}

// Omitted returns a note that stands for a part of a message that the model cannot be shown.
func Omitted(what, why string) string { return "[" + what + " omitted: " + why + "]" }

// DecodePicture decodes a picture from base64 or from a data URL.
func DecodePicture(text string, id int) (runtime.Picture, error) {
	if id >= limits.Pictures {
		return runtime.Picture{}, wire.BadRequest("too many pictures: a request may have at most %d", limits.Pictures)
	}
	p := runtime.Picture{ID: id, Name: fmt.Sprintf("%d", id+1)}
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		kind, data, ok := strings.Cut(rest, ",")
		if !ok || !strings.HasSuffix(kind, ";base64") {
			return p, wire.BadRequest("picture %d is a data URL without base64", id+1)
		}
		text = data
	}
	var err error
	if p.Data, err = base64.StdEncoding.DecodeString(text); err != nil {
		return p, wire.BadRequest("picture %d is not valid base64: %v", id+1, err)
	}
	return p, nil
}

// CheckPicture returns an error if a picture's header cannot be read, or decoding it needs too much memory.
func (m *Model) CheckPicture(p runtime.Picture) error {
	if m.Vision == nil {
		return nil
	}
	_, err := m.Vision.Measure(p, p.ID)
	return err
}
