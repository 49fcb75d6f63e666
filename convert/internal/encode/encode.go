// Package encode has the quotations in messages that the rooms of convert share.
package encode

import "github.com/ingotml/ingot/internal/limits/clip"

// Clip shortens a quotation for a message.
func Clip(s string) string { return clip.Text(s, 80) }
