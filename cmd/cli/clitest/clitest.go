// Package clitest helps tests of commands.
package clitest

import (
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal"
)

// Foul is a text that clears the screen, writes to the clipboard, forges a line and reverses what follows.
const Foul = "a\x1b[2J\x1b]52;c;eA==\x07\u009b1m\rb\nforged\u202e"

// CheckClean fails the test if a text that contains Foul is not its own clean form.
func CheckClean(t testing.TB, what, text string) {
	t.Helper()
	if terminal.Clean(text) != text || !strings.Contains(text, `\u001b[2J`) {
		t.Errorf("%s: %q", what, text)
	}
}
