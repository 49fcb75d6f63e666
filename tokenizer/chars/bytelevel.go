package chars

import (
	"strconv"
	"unicode/utf8"
)

// The byte-level alphabet maps each byte to a printable character: the Latin-1 character if it is printable, otherwise
// characters from U+0100 on in order (the GPT-2 encoder's table).
var (
	ByteToRune [256]rune
	RuneToByte [0x144]int16 // -1: not in the alphabet
)

func init() {
	for i := range RuneToByte {
		RuneToByte[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		c := rune(b)
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			c = next
			next++
		}
		ByteToRune[b] = c
		RuneToByte[c] = int16(b)
	}
}

// ToByteLevel maps each byte of s to its character.
func ToByteLevel(s string) string {
	b := make([]byte, 0, 2*len(s))
	for i := 0; i < len(s); i++ {
		b = utf8.AppendRune(b, ByteToRune[s[i]])
	}
	return string(b)
}

// FromByteLevel appends the bytes that the characters of a token stand for, or the token itself if one of its
// characters is not in the alphabet.
func FromByteLevel(dst []byte, token string) []byte {
	n := len(dst)
	for _, c := range token {
		if int(c) >= len(RuneToByte) || RuneToByte[c] < 0 {
			return append(dst[:n], token...)
		}
		dst = append(dst, byte(RuneToByte[c]))
	}
	return dst
}

// ByteToken returns the byte of a token <0xNN>, in either case. Like Rust's from_str_radix, it accepts a leading plus
// sign.
func ByteToken(s string) (byte, bool) {
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
