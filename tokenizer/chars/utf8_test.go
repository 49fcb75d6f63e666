package chars

import "testing"

func TestValidText(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"é日😀":                      "é日😀",
		"\x80":                     "\ufffd",
		"a\xffb":                   "a\ufffdb",
		"\xc3":                     "\ufffd",
		"\xe2\x82":                 "\ufffd",
		"\xe2\x82x":                "\ufffdx",
		"\xf0\x9f\x98":             "\ufffd",
		"\xf0\x9f\x98\xc3\xa9":     "\ufffdé",
		"\xc0\xaf":                 "\ufffd\ufffd",
		"\xe0\x80\x80":             "\ufffd\ufffd\ufffd",
		"\xed\xa0\x80":             "\ufffd\ufffd\ufffd",
		"\xf4\x90\x80\x80":         "\ufffd\ufffd\ufffd\ufffd",
		"\xf8\x88\x80\x80\x80":     "\ufffd\ufffd\ufffd\ufffd\ufffd",
		"caf\xe9 cr\xe8me":         "caf\ufffd cr\ufffdme",
		"\xef\xbf\xbd\xef\xbf\xbe": "\ufffd\ufffe",
	} {
		if got := ValidText(in); got != want {
			t.Errorf("%q: got %+q, want %+q", in, got, want)
		}
	}
}
