package decode

import (
	"unicode/utf8"

	"github.com/ingotml/ingot/tokenizer/chars"
)

// byteLevelDecoder concatenates the bytes that the tokens stand for and replaces invalid UTF-8 by U+FFFD.
type byteLevelDecoder struct{}

func (byteLevelDecoder) fuses(bool) bool { return true }
func (byteLevelDecoder) start(fused bool) decoding {
	if fused { // a single token, which is in the alphabet as a whole or not at all
		return &buffered{apply: func(s string) string { return chars.ValidText(string(chars.FromByteLevel(nil, s))) }}
	}
	return &byteDecoding{}
}

type byteDecoding struct {
	pending []byte // an incomplete character
	out     []byte
}

func (d *byteDecoding) token(s string, emit func(string)) {
	d.pending = chars.FromByteLevel(d.pending, s)
	d.out = d.out[:0]
	rest := d.pending
	for len(rest) > 0 {
		n, state := chars.Sequence(rest)
		if state == chars.Incomplete {
			break
		}
		if state == chars.WellFormed {
			d.out = append(d.out, rest[:n]...)
		} else {
			d.out = append(d.out, chars.Replacement...)
		}
		rest = rest[n:]
	}
	d.pending = append(d.pending[:0], rest...)
	if len(d.out) > 0 {
		emit(string(d.out))
	}
}

func (d *byteDecoding) end(emit func(string)) {
	if len(d.pending) > 0 {
		d.pending = d.pending[:0]
		emit(chars.Replacement)
	}
}

// byteFallback joins a run of <0xNN> tokens to text. If the run is not valid UTF-8, each of its tokens becomes U+FFFD,
// so nothing is certain before the run ends (decoders/byte_fallback.rs of the reference).
type byteFallback struct{}

func (byteFallback) fuses(fused bool) bool { return fused }
func (byteFallback) start(fused bool) decoding {
	d := &fallbackDecoding{}
	if fused {
		return &buffered{apply: func(s string) (out string) {
			emit := func(s string) { out += s }
			d.token(s, emit)
			d.end(emit)
			return out
		}}
	}
	return d
}

type fallbackDecoding struct{ run []byte }

func (d *fallbackDecoding) token(s string, emit func(string)) {
	if b, ok := chars.ByteToken(s); ok {
		d.run = append(d.run, b)
		return
	}
	d.end(emit)
	emit(s)
}

func (d *fallbackDecoding) end(emit func(string)) {
	switch {
	case len(d.run) == 0:
		return
	case utf8.Valid(d.run):
		emit(string(d.run))
	default:
		for range d.run {
			emit(chars.Replacement)
		}
	}
	d.run = d.run[:0]
}

// fuse joins all tokens to one.
type fuse struct{}

func (fuse) fuses(bool) bool     { return true }
func (fuse) start(bool) decoding { return &passThrough{} }

// passThrough emits its input unchanged.
type passThrough struct{}

func (passThrough) token(s string, emit func(string)) {
	if s != "" {
		emit(s)
	}
}
func (passThrough) end(func(string)) {}
