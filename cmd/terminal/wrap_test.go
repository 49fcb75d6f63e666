package terminal

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cmd/terminal/terminaltest"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"short", "short\n"},
		{"one two three four", "one two\nthree four\n"},
		{"a longerword", "a\nlongerword\n"},
		{"averyveryverylongword", "averyveryv\nerylongwor\nd\n"},
		{"one averyveryverylongword", "one\naveryveryv\nerylongwor\nd\n"},
		{"1234567890 12", "1234567890\n12\n"},
		{"12345 67890 12", "12345\n67890 12\n"},
		{"one\n  two", "one\n  two\n"},
		{"\u65e5\u672c\u8a9e\u65e5\u672c\u8a9e", "\u65e5\u672c\u8a9e\u65e5\u672c\n\u8a9e\n"},
		{"abc\u65e5\u672c\u8a9e\u65e5", "abc\u65e5\u672c\u8a9e\n\u65e5\n"},
		{"a\tb", "a   b\n"},
		{"\x1b[3mi\r\n\u009b", "\\u001b[3mi\n\\u009b\n"},
	} {
		for _, at := range []int{1, 3, 1000} { // bytes per write
			screen := terminaltest.New(t, 11, 5)
			w := &Wrapper{To: screen, Columns: func() int { return 11 }}
			for rest := test.text; rest != ""; {
				n := min(at, len(rest))
				io.WriteString(w, rest[:n])
				rest = rest[n:]
			}
			if got := screen.Text(); got != test.want {
				t.Errorf("%q by %d: %q, want %q", test.text, at, got, test.want)
			}
		}
	}
}

func TestNoWrap(t *testing.T) {
	var b bytes.Buffer
	w := &Wrapper{To: &b}
	text := strings.Repeat("word ", 100) + "\n"
	io.WriteString(w, text)
	if b.String() != text || w.Column() != 0 {
		t.Errorf("%q, column %d", b.String(), w.Column())
	}
}
