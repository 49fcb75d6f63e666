package tokenizer

// Bytes returns the bytes that a token adds to a text after other tokens. They need not be whole characters. It returns
// false for special tokens, for ids that the vocabulary does not have, and for all tokens of a decoder that looks at
// several tokens at a time (WordPiece, BPEDecoder, CTC, Replace with a regular expression).
func (t *Tokenizer) Bytes(id int32) ([]byte, bool) {
	token, ok := t.decodable(id, true)
	if !ok || id < 0 {
		return nil, false
	}
	return t.decoder.Bytes(token)
}
