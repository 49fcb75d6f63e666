// Package encode has the encodings that the rooms of convert share: the JSON that is stored in images, and quotations
// in messages.
package encode

import (
	"bytes"
	"encoding/json"

	"github.com/ingotml/ingot/limits/clip"
)

// JSON writes compact JSON: map keys sorted, no HTML escaping, no final newline.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Clip shortens a quotation for a message.
func Clip(s string) string { return clip.Text(s, 80) }
