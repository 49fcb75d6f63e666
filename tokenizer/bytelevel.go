package tokenizer

import "unicode/utf8"

// The byte-level alphabet gives each byte a printable character: itself where Latin-1 has one, else U+0100 and up in
// order (the GPT-2 encoder's table).
var (
	byteToRune [256]rune
	runeToByte [0x144]int16 // -1: not of the alphabet
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

// toByteLevel writes each byte of s as its character.
func toByteLevel(s string) string {
	b := make([]byte, 0, 2*len(s))
	for i := 0; i < len(s); i++ {
		b = utf8.AppendRune(b, byteToRune[s[i]])
	}
	return string(b)
}

// fromByteLevel appends the bytes that a token stands for: those of its characters or, when one of them is not of the
// alphabet, the token's own.
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
