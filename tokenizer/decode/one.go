package decode

import (
	"strings"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/pattern"
)

// Bytes returns the bytes that a token adds to a text after other tokens, or false if a step looks at several tokens.
func (d Decoder) Bytes(token string) ([]byte, bool) {
	fused := false
	for _, step := range d {
		switch step := step.(type) {
		case byteLevelDecoder:
			if fused {
				return nil, false
			}
			return chars.FromByteLevel(nil, token), true
		case byteFallback:
			if b, ok := chars.ByteToken(token); ok && !fused {
				return []byte{b}, true
			}
		case sentencePiece:
			if b, ok := chars.ByteToken(token); ok && step.byteFallback {
				return []byte{b}, true
			}
			if step.kinds[token] != 0 {
				return nil, false
			}
			token = strings.ReplaceAll(token, chars.SpaceMark, " ")
		case fuse:
			fused = true
		case replaceDecoder:
			from, ok := step.p.(pattern.Literal)
			if !ok || fused && len(from) > len(chars.SpaceMark) {
				return nil, false
			}
			token = strings.ReplaceAll(token, string(from), step.content)
		case metaspaceDecoder:
			token = strings.ReplaceAll(token, step.Mark, " ")
		case stripDecoder:
			if !fused || step.right > 0 { // of a fused text, only the beginning is stripped
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return []byte(token), true
}
