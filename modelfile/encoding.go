package modelfile

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

var lineEnd = regexp.MustCompile("\r+\n")

// decode converts the bytes of a Modelfile to text. Its lines end in LF, or in a CR alone.
func decode(name string, data []byte) (string, error) {
	var text string
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		var msg string
		if text, msg = decodeUTF16(data[2:], binary.LittleEndian); msg != "" {
			return "", &Error{File: name, Msg: msg}
		}
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		var msg string
		if text, msg = decodeUTF16(data[2:], binary.BigEndian); msg != "" {
			return "", &Error{File: name, Msg: msg}
		}
	default:
		text = string(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")))
	}
	text = lineEnd.ReplaceAllLiteralString(text, "\n")
	line, start := 1, 0
	wrong := func(at int, msg, quoted string) error {
		return &Error{File: name, Line: line, Col: 1 + utf8.RuneCountInString(text[start:at]), Msg: msg, Text: quoted}
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return "", wrong(i, "not UTF-8", text[i:min(i+4, len(text))])
		case r == 0:
			return "", wrong(i, "a NUL character: not a text file, or UTF-16 without a byte order mark", "")
		case r == '\n':
			line, start = line+1, i+1
		}
		i += size
	}
	return text, nil
}

// decodeUTF16 decodes UTF-16. If it fails, problem says why.
func decodeUTF16(data []byte, order binary.ByteOrder) (text, problem string) {
	if len(data)%2 != 0 {
		return "", "not UTF-16: it has an odd number of bytes"
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	runes := utf16.Decode(units)
	if again := utf16.Encode(runes); !slices.Equal(again, units) { // an unpaired surrogate became U+FFFD
		return "", "not UTF-16: unpaired surrogate"
	}
	return string(runes), ""
}
