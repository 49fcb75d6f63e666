package server

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/runtime"
)

// decodePicture reads a picture file in base64, alone or as a data URL.
func decodePicture(text string, id int) (runtime.Picture, error) {
	if id >= limits.Pictures {
		return runtime.Picture{}, badRequest("a request may have %d pictures", limits.Pictures)
	}
	p := runtime.Picture{ID: id, Name: fmt.Sprintf("%d", id+1)}
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		kind, data, ok := strings.Cut(rest, ",")
		if !ok || !strings.HasSuffix(kind, ";base64") {
			return p, badRequest("picture %d is a data URL, but not in base64", id+1)
		}
		text = data
	}
	var err error
	if p.Data, err = base64.StdEncoding.DecodeString(text); err != nil {
		return p, badRequest("picture %d is not base64: %v", id+1, err)
	}
	return p, nil
}
