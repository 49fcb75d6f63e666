package batch

import (
	"strings"

	"github.com/ingotml/ingot/tokenizer"
)

// textStream decodes tokens to text that can be sent: whole characters, and nothing that may be the beginning of a stop
// text. Without a tokenizer there is no text.
type textStream struct {
	tokens  *tokenizer.Stream // nil without a tokenizer
	stops   []string
	held    string // decoded text that may begin a stop text
	matched string // the stop text that was found
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

// followed is how many tokens before a text its decoder sees: enough for one that is not special, and for the rest of a
// character.
const followed = 16

// follow makes the text the continuation of a prompt's.
func (s *textStream) follow(prompt []int32) {
	if s.tokens == nil {
		return
	}
	for _, id := range prompt[max(0, len(prompt)-followed):] {
		s.tokens.Next(id)
	}
}

// next adds a token. If stopped is true, a stop text was found, and text is the last text before it.
func (s *textStream) next(id int32) (text string, stopped bool) {
	if s.tokens == nil {
		return "", false
	}
	return s.add(s.tokens.Next(id))
}

// flush returns the text that was held back, at the end of a stream.
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

// pending returns the length of the longest suffix of held that begins a stop text.
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
