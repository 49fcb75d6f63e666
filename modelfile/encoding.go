package modelfile

import (
	"bytes"
	"regexp"
	"unicode/utf16"
	"unicode/utf8"
)

var lineEnd = regexp.MustCompile("\r+\n")

// decode turns the bytes of a Modelfile into text with LF line ends.
func decode(name string, data []byte) (string, error) {
	var text string
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		units, ok := units(data[2:], func(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 })
		if !ok {
			return "", &Error{File: name, Msg: "not UTF-16: it has an odd number of bytes"}
		}
		text = string(utf16.Decode(units))
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		units, ok := units(data[2:], func(b []byte) uint16 { return uint16(b[1]) | uint16(b[0])<<8 })
		if !ok {
			return "", &Error{File: name, Msg: "not UTF-16: it has an odd number of bytes"}
		}
		text = string(utf16.Decode(units))
	default:
		text = string(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")))
	}
	text = lineEnd.ReplaceAllLiteralString(text, "\n")
	line, start := 1, 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return "", &Error{File: name, Line: line, Col: 1 + utf8.RuneCountInString(text[start:i]), Msg: "not UTF-8", Text: text[i:min(i+4, len(text))]}
		case r == 0:
			return "", &Error{File: name, Line: line, Col: 1 + utf8.RuneCountInString(text[start:i]), Msg: "a NUL character: not a text file, or UTF-16 without a byte order mark"}
		case r == '\n':
			line, start = line+1, i+1
		}
		i += size
	}
	return text, nil
}

func units(data []byte, unit func([]byte) uint16) ([]uint16, bool) {
	out := make([]uint16, len(data)/2)
	for i := range out {
		out[i] = unit(data[2*i:])
	}
	return out, len(data)%2 == 0
}
