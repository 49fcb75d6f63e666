package clip

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		clip           func(string, int) string
	}{
		{"within", "äöü", "äöü", Text},
		{"cut", "äöüx", "äöü...", Text},
		{"white space", " a\n", " a\n", Text},
		{"invalid, within", "a\xff", "a\xff", Text},
		{"invalid, cut", "\xff\xfeab", "\ufffd\ufffda...", Text},
		{"empty", "", "", Text},
		{"line", " a\r\n\t b ", "a b", Line},
		{"line, cut", "ab  cd", "ab ...", Line},
		{"bytes", "abc", "abc", Bytes},
		{"bytes, cut", "abcd", "abc...", Bytes},
		{"bytes, within a character", "aäö", "aä...", Bytes},
		{"bytes, in a character", "abä", "ab...", Bytes},
		{"bytes, invalid, within", "a\xff", "a\xff", Bytes},
	} {
		if got := c.clip(c.in, 3); got != c.want {
			t.Errorf("%s: %q is %q, want %q", c.name, c.in, got, c.want)
		}
	}
	if got, want := Controls("a\nb\x1b[2J\u009b\u202eä"), "a b [2J \u202eä"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzClip(f *testing.F) {
	f.Add("a\xffä\n", 3)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = max(most, 0)
		runes := []rune(s)
		want := s
		if len(runes) > most {
			want = string(runes[:most]) + cut
		}
		if got := Text(s, most); got != want {
			t.Errorf("%q, %d: %q, want %q", s, most, got, want)
		}
		if got := Bytes(s, most); len(s) <= most && got != s || len(got) > most+len(cut) && got != s ||
			got != s && !utf8.ValidString(got) {
			t.Errorf("%q, %d: %q", s, most, got)
		}
		if got := Line(s, most); strings.ContainsAny(got, "\r\n\t") {
			t.Errorf("%q, %d: %q", s, most, got)
		}
	})
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0123456789abcdef", "0123456789abcdef"},
		{"0123456789abcdefg", "012345678 ... fg"},
		{"01234567\u00e4789abcdefg", "01234567 ... fg"},
		{strings.Repeat("x", 1<<20) + "\u00e4", "xxxxxxxxx ... \u00e4"},
	} {
		if got := Middle(c.in, 16); got != c.want {
			t.Errorf("%.40q is %q, want %q", c.in, got, c.want)
		}
	}
}
