package tokenizer

// Stream decodes ids one at a time. The concatenated results of Next and Flush equal Decode of all ids. It is not safe
// for concurrent use.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	run         *decodeRun
}

// Stream starts a text. skipSpecial leaves out special tokens.
func (t *Tokenizer) Stream(skipSpecial bool) *Stream {
	return &Stream{t: t, skipSpecial: skipSpecial, run: t.decoder.start()}
}

// Next returns the text that becomes certain with id: whole characters, or "" if none is complete. An id that the
// vocabulary does not have adds nothing.
func (s *Stream) Next(id int32) string {
	token, ok := s.t.decodable(id, s.skipSpecial)
	if !ok {
		return ""
	}
	s.run.out = s.run.out[:0]
	s.run.token(token)
	return string(s.run.out)
}

// Flush returns the text held back, with U+FFFD for an incomplete character, and resets the stream.
func (s *Stream) Flush() string {
	s.run.out = s.run.out[:0]
	s.run.end()
	text := string(s.run.out)
	s.run = s.t.decoder.start()
	return text
}
