package server

import (
	"crypto/rand"
	"strings"

	"github.com/ingotml/ingot/chat/parse"
)

// newID returns a random id with a prefix.
func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// callID returns a tool call's id. If the model gave none, it makes one of nine letters and digits, which the strictest
// templates require.
func callID(c parse.ToolCall) string {
	if c.ID != "" {
		return c.ID
	}
	return rand.Text()[:9]
}
