package fault

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestErrorf(t *testing.T) {
	err := Errorf(ErrToken, "id %d", 7)
	if err.Error() != "id 7" || !errors.Is(err, ErrToken) || errors.Is(err, ErrInvalid) {
		t.Errorf("%v, which wraps %v", err, errors.Unwrap(err))
	}
	long := Errorf(ErrInvalid, "token %q is not a token", strings.Repeat("é", 1000)).Error()
	if len(long) > maxErrorText+len(" ... ��") || !utf8.ValidString(long) {
		t.Errorf("%d bytes: %q", len(long), long)
	}
	if !strings.HasPrefix(long, `token "é`) || !strings.HasSuffix(long, `é" is not a token`) {
		t.Errorf("the ends of the text are missing: %q", long)
	}
}

func TestPlain(t *testing.T) {
	for name, want := range map[string]string{
		"BPE": "BPE", "": `""`, "a b": `"a b"`, "a\n": `"a\n"`, "é": `"é"`,
	} {
		if got := Plain(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
