package normalize

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/fault"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
	"github.com/ingotml/ingot/tokenizer/trie"
)

// spNormalizer is the normalizer of a SentencePiece model (normalizer.cc).
type spNormalizer struct {
	user        *trie.Trie
	charsmap    *charsmap // nil: characters are unchanged
	Prefix      bool      // prepend a space
	Everywhere  bool      // also to text that does not begin the input
	removeExtra bool
	space       string
}

// NewSentencePiece returns the normalizer of a SentencePiece file.
func NewSentencePiece(m *sentencepiece.Model) (*spNormalizer, error) {
	n := &spNormalizer{user: sentencepiece.UserTrie(m), Prefix: m.DummyPrefix, removeExtra: m.RemoveExtra, space: " "}
	if m.Escapes {
		n.space = chars.SpaceMark
	}
	if len(m.Charsmap) > 0 {
		c, err := newCharsmap(m.Charsmap)
		if err != nil {
			return nil, fault.Errorf(fault.ErrInvalid, "tokenizer.model: %v", err)
		}
		n.charsmap = c
	}
	return n, nil
}

// next returns the normalized start of s and the number of bytes of s that it replaces.
func (n *spNormalizer) next(p *Pass, s string) (to string, width int, err error) {
	work := 8
	if n.user != nil {
		width, id, read := n.user.Longest(0, s)
		if work += read; id >= 0 {
			return s[:width], width, p.Spend(work)
		}
	}
	if n.charsmap != nil {
		read := 0
		to, width, read = n.charsmap.longest(s)
		if work += read; width > 0 {
			return to, width, p.Spend(work + len(to))
		}
	}
	_, width = utf8.DecodeRuneInString(s)
	return s[:width], width, p.Spend(work)
}

func (n *spNormalizer) Normalize(p *Pass, s string) (string, error) {
	if n.removeExtra {
		for s != "" {
			to, width, err := n.next(p, s)
			if err != nil {
				return "", err
			}
			if to != " " {
				break
			}
			s = s[width:]
		}
		if s == "" {
			return "", nil
		}
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/2 + 3)
	if n.Prefix && (p.Head || n.Everywhere) {
		b.WriteString(n.space)
	}
	afterSpace := n.removeExtra
	kept := 0 // length without trailing spaces
	for s != "" {
		to, width, err := n.next(p, s)
		if err != nil {
			return "", err
		}
		s = s[width:]
		if afterSpace {
			to = strings.TrimLeft(to, " ")
		}
		for to != "" {
			at := strings.IndexByte(to, ' ')
			if at != 0 {
				text := to
				if at > 0 {
					text = to[:at]
				}
				b.WriteString(text)
				kept = b.Len()
				if at < 0 {
					afterSpace = false
					break
				}
			}
			b.WriteString(n.space)
			to = to[at+1:]
			afterSpace = n.removeExtra
		}
		if b.Len() > p.Room {
			return "", p.tooLong()
		}
	}
	out := b.String()
	if n.removeExtra {
		out = out[:kept]
		for strings.HasSuffix(out, n.space) { // also remove marks from the original text
			out = out[:len(out)-len(n.space)]
		}
	}
	return out, nil
}
