package builtin

import (
	"math"
	"strings"
	"unicode"

	"github.com/ingotml/ingot/chat/jinja/value"
)

func filterWordWrap(r *value.Run, v []value.Value) (value.Value, error) {
	width, err := value.NeedInt(v[1], 79)
	if err != nil {
		return nil, err
	}
	sep := "\n"
	if v[3] != value.Missing && v[3] != nil {
		if sep, err = value.NeedText(v[3], "wrapstring"); err != nil {
			return nil, err
		}
	}
	s, ok := v[0].(string)
	if !ok {
		if u, is := v[0].(*value.Undefined); is {
			return nil, u.Fail()
		}
		return nil, value.Raise("AttributeError", "'%s' object has no attribute 'splitlines'", value.TypeName(v[0]))
	}
	long := v[2] == value.Missing || value.Truth(v[2])
	hyphens := v[4] == value.Missing || value.Truth(v[4])
	var lines []string
	for _, l := range splitLines(s, false, math.MaxInt64) {
		if width <= 0 {
			return nil, value.ValueError("invalid width %d (must be > 0)", width)
		}
		if err := r.Alloc(value.Overhead * len(l)); err != nil {
			return nil, err
		}
		w := wrap(wrapChunks(l, hyphens), int(min(width, 1<<30)), long, hyphens)
		lines = append(lines, strings.Join(w, sep))
	}
	out, err := r.Join(lines, sep)
	return out, err
}

// wrapSpace is textwrap's white space, which is ASCII only.
func wrapSpace(c rune) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// wrapChunks splits a line at possible breaks: at white space, after hyphens inside words and around long dashes.
func wrapChunks(s string, hyphens bool) []string {
	var chunks []string
	for s != "" {
		n := len(s) - len(strings.TrimLeftFunc(s, wrapSpace))
		if n > 0 {
			chunks, s = append(chunks, s[:n]), s[n:]
			continue
		}
		if n = strings.IndexFunc(s, wrapSpace); n < 0 {
			n = len(s)
		}
		if hyphens {
			chunks = append(chunks, hyphenBreaks(s[:n])...)
		} else {
			chunks = append(chunks, s[:n])
		}
		s = s[n:]
	}
	return chunks
}

// hyphenBreaks splits a word after hyphens, and around two or more of them between words.
func hyphenBreaks(w string) []string {
	var chunks []string
	for runes := []rune(w); len(runes) > 0; {
		n := hyphenBreak(runes)
		chunks, runes = append(chunks, string(runes[:n])), runes[n:]
	}
	return chunks
}

// hyphenBreak returns the length of the first chunk of a word. It reads no further than that and a run of hyphens.
func hyphenBreak(runes []rune) int {
	letter := func(i int) bool {
		return i >= 0 && i < len(runes) && isWordRune(runes[i]) && !unicode.IsDigit(runes[i])
	}
	punctuation := func(i int) bool {
		return isWordRune(runes[i]) || strings.ContainsRune("!\"'&.,?", runes[i])
	}
	if runes[0] == '-' {
		n := 1
		for n < len(runes) && runes[n] == '-' {
			n++
		}
		if n >= 2 && n < len(runes) && isWordRune(runes[n]) {
			return n
		}
	}
	for i := 1; i < len(runes); i++ {
		if runes[i] != '-' {
			continue
		}
		if i+1 < len(runes) && runes[i+1] == '-' {
			n := i
			for n < len(runes) && runes[n] == '-' {
				n++
			}
			if n < len(runes) && isWordRune(runes[n]) && punctuation(i-1) {
				return i
			}
			i = n
			continue
		}
		before := letter(i-1) && letter(i-2) || i >= 3 && runes[i-2] == '-' && letter(i-1) && letter(i-3)
		after := letter(i+1) && (letter(i+2) || i+3 < len(runes) && runes[i+2] == '-' && letter(i+3))
		if before && after {
			return i + 1
		}
	}
	return len(runes)
}

// wrap fills lines with chunks like Python's textwrap.
func wrap(chunks []string, width int, long, hyphens bool) []string {
	var lines []string
	blank := func(s string) bool { return strings.TrimLeftFunc(s, value.IsSpace) == "" }
	sizes := make([]int, len(chunks))
	for i, c := range chunks {
		sizes[i] = value.RuneCount(c)
	}
	for i := 0; i < len(chunks); {
		var line []string
		used := 0
		if len(lines) > 0 && blank(chunks[i]) {
			i++
		}
		for i < len(chunks) {
			if used+sizes[i] > width {
				break
			}
			line, used = append(line, chunks[i]), used+sizes[i]
			i++
		}
		if i < len(chunks) && sizes[i] > width {
			room := width - used
			if width < 1 {
				room = 1
			}
			switch {
			case long:
				at, head := min(room, sizes[i]), firstRunes(chunks[i], room)
				if hyphens && sizes[i] > room {
					if h := strings.LastIndexByte(head, '-'); h > 0 && strings.Trim(head[:h], "-") != "" {
						head = head[:h+1]
						at = value.RuneCount(head)
					}
				}
				line = append(line, head)
				chunks[i], sizes[i] = chunks[i][len(head):], sizes[i]-at
				if chunks[i] == "" {
					i++
				}
			case len(line) == 0:
				line = append(line, chunks[i])
				i++
			}
		}
		if len(line) > 0 && blank(line[len(line)-1]) {
			line = line[:len(line)-1]
		}
		if len(line) > 0 {
			lines = append(lines, strings.Join(line, ""))
		}
	}
	return lines
}

// firstRunes returns the first n characters, and reads no others.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
