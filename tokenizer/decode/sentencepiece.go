package decode

import (
	"strings"

	"github.com/ingotml/ingot/tokenizer/chars"
	"github.com/ingotml/ingot/tokenizer/sentencepiece"
)

// sentencePiece is SentencePiece's decoder: it replaces marks by spaces, except the first of the text if the encoder
// prepended one, and each invalid UTF-8 byte by U+FFFD.
type sentencePiece struct {
	kinds                     map[string]uint64 // of the pieces that are not text
	unkSurface                string
	byteFallback, removeExtra bool
	begins                    bool // the encoder may have prepended a mark
}

// NewSentencePiece returns the decoder of a SentencePiece file.
func NewSentencePiece(m *sentencepiece.Model) Decoder {
	d := sentencePiece{map[string]uint64{}, m.UnkSurface, m.ByteFallback, m.RemoveExtra, m.DummyPrefix || m.RemoveExtra}
	for _, p := range m.Marked {
		if p.Kind == sentencepiece.Control || p.Kind == sentencepiece.Unknown {
			d.kinds[p.Text] = p.Kind
		}
	}
	return Decoder{d}
}

func (sentencePiece) fuses(bool) bool { return true }
func (d sentencePiece) start(bool) decoding {
	return &sentenceDecoding{sentencePiece: d, begins: d.begins}
}

type sentenceDecoding struct {
	sentencePiece
	begins  bool // a mark that comes now is removed
	pending []byte
}

func (d *sentenceDecoding) token(s string, emit func(string)) {
	if b, ok := chars.ByteToken(s); ok && d.byteFallback {
		d.pending = append(d.pending, b)
		d.bytes(emit, false)
		return
	}
	d.bytes(emit, true)
	switch d.kinds[s] {
	case sentencepiece.Control:
		emit(s)
		return
	case sentencepiece.Unknown:
		d.begins = false
		emit(d.unkSurface)
		return
	}
	if d.begins {
		rest, cut := strings.CutPrefix(s, chars.SpaceMark)
		s = rest
		d.begins = s == "" && (!cut || d.removeExtra)
	}
	if s != "" {
		emit(strings.ReplaceAll(s, chars.SpaceMark, " "))
	}
}

func (d *sentenceDecoding) end(emit func(string)) { d.bytes(emit, true) }

// bytes emits the pending bytes that are certain; at the end of a run (ends), all of them.
func (d *sentenceDecoding) bytes(emit func(string), ends bool) {
	rest := d.pending
	var b strings.Builder
	for len(rest) > 0 {
		n, state := chars.Sequence(rest)
		if state == chars.Incomplete && !ends {
			break
		}
		if state == chars.WellFormed {
			b.Write(rest[:n])
		} else {
			b.WriteString(chars.Replacement)
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
