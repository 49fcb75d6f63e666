package redact

import (
	"strings"
	"testing"
)

func TestRedactURLs(t *testing.T) {
	for text, want := range map[string]string{
		"no address? none":                                 "no address? none",
		"GET https://ann:pw@host/a?b=c failed":             "GET https://host/a failed",
		`Get "https://host:443/a/b?c#d": EOF`:              `Get "https://host:443/a/b": EOF`,
		"two: http://a/?x=1 and http://b?y=2, or http://c": "two: http://a/ and http://b or http://c",
		"http://a@b@c/@d?e":                                "http://c/@d",
	} {
		if got := URLs(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := Clip("a\nhttp://u:p@host/x?y=z\x1b[0m"); got != "a http://host/x" {
		t.Errorf("%q", got)
	}
}

func TestClip(t *testing.T) {
	for in, want := range map[string]string{
		" a\r\n b\t": "a b", "\x1b[2Ja\u009b": "[2Ja", strings.Repeat("x", 300): strings.Repeat("x", 200) + "...",
	} {
		if got := Clip(in); got != want {
			t.Errorf("clip(%q) = %q", in, got)
		}
	}
}
