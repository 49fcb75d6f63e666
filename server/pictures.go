package server

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/wire"
)

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
