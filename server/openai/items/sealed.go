package items

import "strings"

// Sealed is a kind of text that clients send back as encrypted_content. This server does not encrypt it: the prefix
// tells it from what other servers wrote.
type Sealed string

// Kinds of sealed texts.
const (
	Reasoning Sealed = "ingot:reasoning:"
	Summary   Sealed = "ingot:summary:"
)

// Seal returns the encrypted_content of a text.
func (s Sealed) Seal(text string) string { return string(s) + text }

// open returns the text in an item's encrypted_content, "" if another server wrote it.
func (s Sealed) open(it Item) string {
	text, ok := strings.CutPrefix(it.text("encrypted_content"), string(s))
	if !ok {
		return ""
	}
	return text
}
