package terminal

import (
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	for _, c := range []struct {
		name, text string
		columns    int
		want       string
	}{
		{"a paragraph is filled", "one two\nthree four\n", 9, "one two\nthree\nfour\n"},
		{"paragraphs stay apart", "one\n\ntwo\n", 9, "one\n\ntwo\n"},
		{"a heading stays a line", "Flags:\n  a\n", 9, "Flags:\n  a\n"},
		{"text after a colon", "Do one of these:\n- a\n", 20, "Do one of these:\n- a\n"},
		{"the last column wraps below itself", "  -x  aa bb cc\n", 9, "  -x  aa\n      bb\n      cc\n"},
		{"the third column", "  a  b  cc dd ee\n", 12, "  a  b  cc\n        dd\n        ee\n"},
		{"a wide head takes a line", "  --a-long-flag  aa bb\n", 16, "  --a-long-flag\n          aa bb\n"},
		{"no second column", "  aa bb cc dd\n", 8, "  aa bb\n    cc\n    dd\n"},
		{"a wide word stays whole", "abcdefghij k\n", 4, "abcdefghij\nk\n"},
		{"wide characters", "\u6f22\u5b57 \u6f22\u5b57\n", 5, "\u6f22\u5b57\n\u6f22\u5b57\n"},
		{"unknown width", "  aa bb cc\n", 0, "  aa bb cc\n"},
	} {
		got := Fill(c.text, c.columns)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(c.text), " ") {
			t.Errorf("%s: words are lost: %q", c.name, got)
		}
	}
}
