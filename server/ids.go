package server

import (
	"crypto/rand"
	"strings"

	"github.com/ingotml/ingot/chat/parse"
)

// NewID returns a random id with a prefix.
func NewID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// CallID returns a tool call's id. If the model gave none, it makes one of nine letters and digits, which the strictest
// templates require.
func CallID(c parse.ToolCall) string {
	if c.ID != "" {
		return c.ID
	}
	return rand.Text()[:9]
}
