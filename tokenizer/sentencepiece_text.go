package tokenizer

import (
	"strings"
	"unicode/utf8"
)

const spaceMark = "\u2581" // SentencePiece's replacement for a space

// spNormalizer is the normalizer of a SentencePiece model (normalizer.cc).
type spNormalizer struct {
	user        *trie
	charsmap    *charsmap // nil: characters are unchanged
	prefix      bool      // prepend a space
	everywhere  bool      // also to text that does not begin the input
	removeExtra bool
	space       string
}

func (m *spModel) normalizer() (*spNormalizer, error) {
	n := &spNormalizer{user: m.userDefined(), prefix: m.dummyPrefix, removeExtra: m.removeExtra, space: " "}
	if m.escapes {
		n.space = spaceMark
	}
	if len(m.charsmap) > 0 {
		c, err := newCharsmap(m.charsmap)
		if err != nil {
			return nil, failure(ErrInvalid, "tokenizer.model: %v", err)
		}
		n.charsmap = c
	}
	return n, nil
}

// next returns the normalized start of s and the number of bytes of s that it replaces.
func (n *spNormalizer) next(s string) (to string, width int) {
	if n.user != nil {
		if width, id := n.user.longest(0, s); id >= 0 {
			return s[:width], width
		}
	}
	if n.charsmap != nil {
		if to, width = n.charsmap.longest(s); width > 0 {
			return to, width
		}
	}
	_, width = utf8.DecodeRuneInString(s)
	return s[:width], width
}

func (n *spNormalizer) normalize(s string, head *bool) (string, error) {
	limit := maxNormalizedBytes(len(s))
	size := len(s)
	if n.removeExtra {
		for s != "" {
			to, width := n.next(s)
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
	if n.prefix && (*head || n.everywhere) {
		b.WriteString(n.space)
	}
	afterSpace := n.removeExtra
	kept := 0 // length without trailing spaces
	for s != "" {
		to, width := n.next(s)
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
		if b.Len() > limit {
			return "", errNormalized(size)
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

// spDecoder is SentencePiece's decoder: it replaces marks by spaces, except the first of the text if the encoder
// prepended one, and each invalid UTF-8 byte by U+FFFD.
type spDecoder struct {
	kinds                     map[string]uint64 // of the pieces that are not text
	unkSurface                string
	byteFallback, removeExtra bool
	begins                    bool // the encoder may have prepended a mark
}

func (m *spModel) decoder() spDecoder {
	d := spDecoder{map[string]uint64{}, m.unkSurface, m.byteFallback, m.removeExtra, m.dummyPrefix || m.removeExtra}
	for _, p := range m.pieces {
		if p.kind == spControl || p.kind == spUnknown {
			d.kinds[p.text] = p.kind
		}
	}
	return d
}

func (spDecoder) fuses(bool) bool       { return true }
func (d spDecoder) start(bool) decoding { return &spDecoding{spDecoder: d, begins: d.begins} }

type spDecoding struct {
	spDecoder
	begins  bool // a mark that comes now is removed
	pending []byte
}

func (d *spDecoding) token(s string, emit func(string)) {
	if b, ok := byteToken(s); ok && d.byteFallback {
		d.pending = append(d.pending, b)
		d.bytes(emit, false)
		return
	}
	d.bytes(emit, true)
	switch d.kinds[s] {
	case spControl:
		emit(s)
		return
	case spUnknown:
		d.begins = false
		emit(d.unkSurface)
		return
	}
	if d.begins {
		rest, cut := strings.CutPrefix(s, spaceMark)
		s = rest
		d.begins = s == "" && (!cut || d.removeExtra)
	}
	if s != "" {
		emit(strings.ReplaceAll(s, spaceMark, " "))
	}
}

func (d *spDecoding) end(emit func(string)) { d.bytes(emit, true) }

// bytes emits the pending bytes that are certain; at the end of a run (ends), all of them.
func (d *spDecoding) bytes(emit func(string), ends bool) {
	rest := d.pending
	var b strings.Builder
	for len(rest) > 0 {
		n, state := sequence(rest)
		if state == incomplete && !ends {
			break
		}
		if state == wellFormed {
			b.Write(rest[:n])
		} else {
			b.WriteString(replacement)
			n = 1
		}
		rest = rest[n:]
	}
	d.pending = append(d.pending[:0], rest...)
	if b.Len() > 0 {
		d.begins = false
		emit(b.String())
	}
}
