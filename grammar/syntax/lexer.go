package syntax

import (
	"slices"
	"strings"
)

// Space moves At behind blank characters and comments, which begin with one of the marks and end with their line. It
// reports whether there was the end of a line.
func (p *Parser) Space(blank string, comments ...string) (line bool) {
	for p.At < len(p.Source) {
		rest := p.Source[p.At:]
		switch {
		case strings.IndexByte(blank, rest[0]) >= 0:
			line = line || rest[0] == '\n'
			p.At++
		case slices.ContainsFunc(comments, func(mark string) bool { return strings.HasPrefix(rest, mark) }):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			p.At += n
		default:
			return line
		}
	}
	return line
}

// NameLength returns the length of the name that s begins with: letters, digits, _ and -.
func NameLength(s string) (n int) {
	for n < len(s) {
		c := s[n]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (n == 0 || (c < '0' || c > '9') && c != '-') {
			break
		}
		n++
	}
	return n
}
