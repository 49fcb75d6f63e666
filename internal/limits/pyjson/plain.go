package pyjson

import "bytes"

// words are the numbers that Python writes and JSON lacks, each with its object. Negative ones come first.
var words = []struct{ word, object []byte }{
	{[]byte("-Infinity"), []byte(`{"__float__": "-Infinity"}`)},
	{[]byte("Infinity"), []byte(`{"__float__": "Infinity"}`)},
	{[]byte("NaN"), []byte(`{"__float__": "NaN"}`)},
}

// Plain returns a text of Python's as JSON: each of the words outside of strings becomes its object. A text without any
// is returned itself.
func Plain(data []byte) []byte {
	if !bytes.Contains(data, words[1].word) && !bytes.Contains(data, words[2].word) {
		return data
	}
	var out []byte
	quoted := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\' && i+1 < len(data):
			out = append(out, c)
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '-' || c == 'I' || c == 'N'):
			if object, n := wordAt(data[i:]); n > 0 {
				out = append(out, object...)
				i += n - 1
				continue
			}
		}
		out = append(out, data[i])
	}
	return out
}

// wordAt returns the object of the word that a text begins with, and the word's length; 0 if there is none.
func wordAt(data []byte) (object []byte, n int) {
	for _, w := range words {
		if bytes.HasPrefix(data, w.word) {
			return w.object, len(w.word)
		}
	}
	return nil, 0
}

// AsPython is the inverse of Plain, for texts made of what it returned.
func AsPython(data []byte) []byte {
	for _, w := range words {
		data = bytes.ReplaceAll(data, w.object, w.word)
	}
	return data
}

// AsWritten is AsPython for an edited text, if its original was not JSON either.
func AsWritten(edited, original []byte) []byte {
	if bytes.Equal(Plain(original), original) {
		return edited
	}
	return AsPython(edited)
}
