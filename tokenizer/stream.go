package tokenizer

import "github.com/ingotml/ingot/tokenizer/decode"

// Stream decodes ids one at a time. The concatenated results of Next and Flush equal Decode of all ids. It is not safe
// for concurrent use.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	run         *decode.Run
}

// Stream starts a text. skipSpecial leaves out special tokens.
func (t *Tokenizer) Stream(skipSpecial bool) *Stream {
	return &Stream{t: t, skipSpecial: skipSpecial, run: t.decoder.Start()}
}

// Next returns the text that becomes certain with id: whole characters, or "" if none is complete. An id that the
// vocabulary does not have adds nothing.
func (s *Stream) Next(id int32) string {
	token, ok := s.t.decodable(id, s.skipSpecial)
	if !ok {
		return ""
	}
	s.run.Out = s.run.Out[:0]
	s.run.Token(token)
	return string(s.run.Out)
}

// Flush returns the text held back, with U+FFFD for an incomplete character, and resets the stream.
func (s *Stream) Flush() string {
	s.run.Out = s.run.Out[:0]
	s.run.End()
	text := string(s.run.Out)
	s.run = s.t.decoder.Start()
	return text
}
