package tokenizer

import "unicode/utf8"

// The byte-level alphabet maps each byte to a printable character: the Latin-1 character if it is printable, otherwise
// characters from U+0100 on in order (the GPT-2 encoder's table).
var (
	byteToRune [256]rune
	runeToByte [0x144]int16 // -1: not in the alphabet
)

func init() {
	for i := range runeToByte {
		runeToByte[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		c := rune(b)
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			c = next
			next++
		}
		byteToRune[b] = c
		runeToByte[c] = int16(b)
	}
}

// toByteLevel maps each byte of s to its character.
func toByteLevel(s string) string {
	b := make([]byte, 0, 2*len(s))
	for i := 0; i < len(s); i++ {
		b = utf8.AppendRune(b, byteToRune[s[i]])
	}
	return string(b)
}

// fromByteLevel appends the bytes that the characters of a token stand for, or the token itself if one of its
// characters is not in the alphabet.
func fromByteLevel(dst []byte, token string) []byte {
	n := len(dst)
	for _, c := range token {
		if int(c) >= len(runeToByte) || runeToByte[c] < 0 {
			return append(dst[:n], token...)
		}
		dst = append(dst, byte(runeToByte[c]))
	}
	return dst
}
