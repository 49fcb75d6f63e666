package tokenizer

import "strings"

// Bytes returns the bytes that a token adds to a text after other tokens. They need not be whole characters. It returns
// false for special tokens, for ids that the vocabulary does not have, and for all tokens of a decoder that looks at
// several tokens at a time (WordPiece, BPEDecoder, CTC, Replace with a regular expression).
func (t *Tokenizer) Bytes(id int32) ([]byte, bool) {
	token, ok := t.decodable(id, true)
	if !ok || id < 0 {
		return nil, false
	}
	fused := false
	for _, step := range t.decoder {
		switch step := step.(type) {
		case byteLevelDecoder:
			if fused {
				return nil, false
			}
			return fromByteLevel(nil, token), true
		case byteFallback:
			if b, ok := byteToken(token); ok && !fused {
				return []byte{b}, true
			}
		case spDecoder:
			if b, ok := byteToken(token); ok && step.byteFallback {
				return []byte{b}, true
			}
			if step.kinds[token] != 0 {
				return nil, false
			}
			token = strings.ReplaceAll(token, spaceMark, " ")
		case fuse:
			fused = true
		case replaceDecoder:
			from, ok := step.p.(literal)
			if !ok || fused && len(from) > len(spaceMark) {
				return nil, false
			}
			token = strings.ReplaceAll(token, string(from), step.content)
		case metaspaceDecoder:
			token = strings.ReplaceAll(token, step.mark, " ")
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
