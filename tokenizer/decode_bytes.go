package tokenizer

import (
	"strconv"
	"unicode/utf8"
)

// byteLevelDecoder joins the bytes that the tokens stand for; what is not UTF-8 in them becomes U+FFFD.
type byteLevelDecoder struct{}

func (byteLevelDecoder) fuses(bool) bool { return true }
func (byteLevelDecoder) start(fused bool) decoding {
	if fused { // one token, which is of the alphabet as a whole or not at all
		return &collected{apply: func(s string) string { return validText(string(fromByteLevel(nil, s))) }}
	}
	return &byteDecoding{}
}

type byteDecoding struct {
	pending []byte // the start of a character
	out     []byte
}

func (d *byteDecoding) token(s string, emit func(string)) {
	d.pending = fromByteLevel(d.pending, s)
	d.out = d.out[:0]
	rest := d.pending
	for len(rest) > 0 {
		n, state := sequence(rest)
		if state == open {
			break
		}
		if state == whole {
			d.out = append(d.out, rest[:n]...)
		} else {
			d.out = append(d.out, replacement...)
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
		emit(replacement)
	}
}

// byteFallback joins runs of <0xNN> tokens to the text that they are; when a run is not UTF-8 each of its tokens becomes
// U+FFFD, so nothing of a run is certain before it ends (decoders/byte_fallback.rs of the reference).
type byteFallback struct{}

func (byteFallback) fuses(fused bool) bool { return fused }
func (byteFallback) start(fused bool) decoding {
	d := &fallbackDecoding{}
	if fused {
		return &collected{apply: func(s string) (out string) {
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
	if b, ok := byteToken(s); ok {
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
			emit(replacement)
		}
	}
	d.run = d.run[:0]
}

// byteToken is the byte of a token <0xNN>, in either case. A plus sign counts as a digit, as in Rust's from_str_radix.
func byteToken(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	digits := s[3:5]
	if digits[0] == '+' {
		digits = digits[1:]
	}
	v, err := strconv.ParseUint(digits, 16, 8)
	return byte(v), err == nil
}

// fuse makes one token of all.
type fuse struct{}

func (fuse) fuses(bool) bool     { return true }
func (fuse) start(bool) decoding { return &passing{} }

// passing hands on what comes.
type passing struct{}

func (passing) token(s string, emit func(string)) {
	if s != "" {
		emit(s)
	}
}
func (passing) end(func(string)) {}
