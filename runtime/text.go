package runtime

import (
	"strings"

	"github.com/ingotml/ingot/tokenizer"
)

// textStream turns tokens into text that may be shown: whole characters, and nothing that may be the start of a stop
// text. Without a tokenizer there is no text.
type textStream struct {
	tokens  *tokenizer.Stream // nil without a tokenizer
	stops   []string
	held    string // decoded, may begin a stop text
	matched string // the stop text that was reached
}

func newTextStream(tok *tokenizer.Tokenizer, stops []string, special bool) *textStream {
	s := &textStream{}
	for _, stop := range stops {
		if stop != "" {
			s.stops = append(s.stops, stop)
		}
	}
	if tok != nil {
		s.tokens = tok.Stream(!special)
	}
	return s
}

// next takes a token; stopped says that a stop text was reached: the text before it is all there is.
func (s *textStream) next(id int32) (text string, stopped bool) {
	if s.tokens == nil {
		return "", false
	}
	return s.add(s.tokens.Next(id))
}

// flush gives what was held back at the end of a stream.
func (s *textStream) flush() string {
	if s.tokens == nil {
		return ""
	}
	text, stopped := s.add(s.tokens.Flush())
	if stopped {
		return text
	}
	text += s.held
	s.held = ""
	return text
}

func (s *textStream) add(text string) (string, bool) {
	s.held += text
	first := -1
	for _, stop := range s.stops {
		if i := strings.Index(s.held, stop); i >= 0 && (first < 0 || i < first) {
			first, s.matched = i, stop
		}
	}
	if first >= 0 {
		text, s.held = s.held[:first], ""
		return text, true
	}
	keep := s.pending()
	text, s.held = s.held[:len(s.held)-keep], s.held[len(s.held)-keep:]
	return text, false
}

// pending is the length of the longest end of the held text that begins a stop text.
func (s *textStream) pending() int {
	longest := 0
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.held)); n > longest; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}
