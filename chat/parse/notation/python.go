package notation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLiteral bounds the nesting of lists and dictionaries in a literal of Python.
const maxLiteral = 64

// Python parses a literal of JSON or Python at the start of s, see pythonValue. rest is the text after it.
func Python(s string) (v json.RawMessage, rest string, err error) { return pythonValue(s, 0) }

// pythonValue parses a literal of JSON, or of Python: a string, a list, a dictionary with strings as keys, a number,
// True, False or None. depth is the number of literals around it. rest is the text after it.
func pythonValue(s string, depth int) (v json.RawMessage, rest string, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	if err = d.Decode(&v); err == nil {
		v, err = Compact(string(v))
		return v, s[d.InputOffset():], err
	}
	if s == "" || depth > maxLiteral {
		return nil, "", err
	}
	switch s[0] {
	case '"', '\'':
		return pythonString(s)
	case '[', '(':
		return pythonItems(s, depth, false)
	case '{':
		return pythonItems(s, depth, true)
	}
	for word, v := range map[string]string{"True": "true", "False": "false", "None": "null"} {
		if rest, ok := strings.CutPrefix(s, word); ok {
			return json.RawMessage(v), rest, nil
		}
	}
	return nil, "", err
}

// pythonItems parses a list, a tuple or a dictionary.
func pythonItems(s string, depth int, keyed bool) (v json.RawMessage, rest string, err error) {
	closing := map[byte]string{'[': "]", '(': ")", '{': "}"}[s[0]]
	var b bytes.Buffer
	for rest = s[1:]; ; {
		rest = strings.TrimLeft(rest, Spaces)
		if after, ok := strings.CutPrefix(rest, closing); ok {
			open, end := "[", "]"
			if keyed {
				open, end = "{", "}"
			}
			return json.RawMessage(open + b.String() + end), after, nil
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if keyed {
			if rest == "" || rest[0] != '"' && rest[0] != '\'' {
				return nil, "", fmt.Errorf("expected a key, got %q", excerpt(rest))
			}
			key, after, err := pythonString(rest)
			if err != nil {
				return nil, "", err
			}
			colon, ok := strings.CutPrefix(strings.TrimLeft(after, Spaces), ":")
			if !ok {
				return nil, "", fmt.Errorf("expected a colon, got %q", excerpt(after))
			}
			b.Write(key)
			b.WriteByte(':')
			rest = strings.TrimLeft(colon, Spaces)
		}
		item, after, err := pythonValue(rest, depth+1)
		if err != nil {
			return nil, "", err
		}
		b.Write(item)
		rest = strings.TrimLeft(after, Spaces)
		if next, ok := strings.CutPrefix(rest, ","); ok {
			rest = next
		} else if !strings.HasPrefix(rest, closing) {
			return nil, "", fmt.Errorf("expected a comma, got %q", excerpt(rest))
		}
	}
}

// pythonString parses a string literal. It supports the escapes of JSON and \'.
func pythonString(s string) (json.RawMessage, string, error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return Quote(b.String()), s[i+1:], nil
		case c == '\\' && i+1 < len(s):
			i++
			i += unescape(&b, s[i:])
		default:
			b.WriteByte(c)
		}
	}
	return nil, "", errors.New("unterminated string")
}

// unescape writes what the text after a backslash stands for, and returns how many bytes it has beyond the first.
func unescape(b *strings.Builder, s string) int {
	if at := strings.IndexByte(`ntrbf\"'/`, s[0]); at >= 0 {
		b.WriteByte("\n\t\r\b\f\\\"'/"[at])
		return 0
	}
	if r, ok := hexRune(s); ok {
		if low, ok := hexRune(strings.TrimPrefix(s[5:], `\`)); ok && s[5] == '\\' {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				b.WriteRune(pair)
				return 10
			}
		}
		b.WriteRune(r)
		return 4
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 0
}

// hexRune parses the beginning of s: u and four hexadecimal digits.
func hexRune(s string) (rune, bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	r, err := strconv.ParseUint(s[1:5], 16, 16)
	return rune(r), err == nil
}
