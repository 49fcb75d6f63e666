package modelfile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/clip"
)

// Format returns the file as text that [Parse] reads back as the same commands. Comments are lost. Format fails if no
// quoting can express a value; values from Parse always have one.
func (f *File) Format() (string, error) {
	var b strings.Builder
	for _, c := range f.Commands {
		value, ok := quote(c.Value)
		if !ok {
			return "", fmt.Errorf("%s %q: a Modelfile cannot quote this text", c.Name, clip.Text(c.Value, maxQuoted))
		}
		b.WriteString(c.Name + " ")
		if c.Key != "" {
			b.WriteString(c.Key + " ")
		}
		b.WriteString(value + "\n")
	}
	return b.String(), nil
}

// quote returns the plainest notation of a value that parses back to it, and false if there is none.
func quote(value string) (string, bool) {
	if !utf8.ValidString(value) || strings.ContainsRune(value, 0) || strings.Contains(value, "\r\n") {
		return "", false
	}
	forms := []string{value, `"` + value + `"`, `"""` + value + `"""`}
	for i, form := range forms {
		p := newParser("", form)
		lines := p.lines
		if (i < 2 && len(lines) > 1) || strings.TrimLeft(lines[0], blanks) == "" {
			continue // prefer triple quotes for several lines
		}
		if skipBlanks(lines[0], 0) != 0 {
			continue
		}
		got, err := p.value(0, 0)
		if err == nil && got == value && (i == 0 || p.next == len(lines)) {
			return form, true
		}
	}
	return "", false
}
