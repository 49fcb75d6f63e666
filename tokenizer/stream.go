package tokenizer

// Stream decodes ids as they come. What Next and Flush return, put together, is what Decode makes of all the ids.
// One goroutine uses it.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	run         *decodeRun
}

// Stream starts a text. skipSpecial leaves special tokens out.
func (t *Tokenizer) Stream(skipSpecial bool) *Stream {
	return &Stream{t: t, skipSpecial: skipSpecial, run: t.decoder.start()}
}

// Next is the text that id adds: whole characters only, "" while one is not complete. An id that the
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

// Flush is the text that was held back, U+FFFD for a character that was never completed. The stream is then as new.
func (s *Stream) Flush() string {
	s.run.out = s.run.out[:0]
	s.run.end()
	text := string(s.run.out)
	s.run = s.t.decoder.start()
	return text
}
