package builtin

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// lineBreak returns the length of a line break at the start of s, otherwise 0.
func lineBreak(s string) int {
	c, n := utf8.DecodeRuneInString(s)
	switch {
	case strings.HasPrefix(s, "\r\n"):
		return 2
	case c >= '\n' && c <= '\r', c >= 0x1c && c <= 0x1e, c == 0x85, c == 0x2028, c == 0x2029:
		return n
	}
	return 0
}

// splitLines splits s at line breaks, at most limit times.
func splitLines(s string, keep bool, limit int64) []string {
	var lines []string
	start := 0
	for i := 0; i < len(s) && int64(len(lines)) < limit; {
		n := lineBreak(s[i:])
		if n == 0 {
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
			continue
		}
		if keep {
			lines = append(lines, s[start:i+n])
		} else {
			lines = append(lines, s[start:i])
		}
		i += n
		start = i
	}
	if start < len(s) {
		lines = append(lines, s[start:])
	}
	return lines
}

// splitSpace splits s at runs of white space, from the left and at most limit times. A negative limit means no limit.
func splitSpace(s string, limit int64) []string {
	var parts []string
	for s = strings.TrimLeftFunc(s, value.IsSpace); s != ""; s = strings.TrimLeftFunc(s, value.IsSpace) {
		if limit == 0 {
			return append(parts, s)
		}
		limit--
		at := strings.IndexFunc(s, value.IsSpace)
		if at < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:at])
		s = s[at:]
	}
	return parts
}

func rsplitSpace(s string, limit int64) []string {
	var parts []string
	for s = strings.TrimRightFunc(s, value.IsSpace); s != ""; s = strings.TrimRightFunc(s, value.IsSpace) {
		if limit == 0 {
			parts = append(parts, s)
			break
		}
		limit--
		at := strings.LastIndexFunc(s, value.IsSpace)
		if at < 0 {
			parts = append(parts, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		parts = append(parts, s[at+n:])
		s = s[:at]
	}
	reverse(parts)
	return parts
}

func rsplit(s, sep string, limit int64) []string {
	var parts []string
	for {
		at := strings.LastIndex(s, sep)
		if at < 0 || limit == 0 {
			parts = append(parts, s)
			reverse(parts)
			return parts
		}
		limit--
		parts = append(parts, s[at+len(sep):])
		s = s[:at]
	}
}

func reverse[T any](s []T) {
	for i, j := 0, len(s)-1; i < j; i, j = i+1, j-1 {
		s[i], s[j] = s[j], s[i]
	}
}
