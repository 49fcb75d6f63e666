package calls

import (
	"strings"
)

// MaxName bounds the length of a tool's name in bytes, where only the text after it shows its end.
const MaxName = 512

// IsName reports whether s can be the name of a tool.
func IsName(s string) bool {
	return s != "" && len(s) <= MaxName && strings.IndexFunc(s, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' ||
			r > 127)
	}) < 0
}
