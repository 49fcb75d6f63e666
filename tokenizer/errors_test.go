package tokenizer

import (
	"errors"
	"strings"
	"testing"
)

// checkError requires a one-line error of the kind want.
func checkError(t *testing.T, what string, err, want error) {
	t.Helper()
	if len(what) > 80 {
		what = what[:80]
	}
	switch {
	case err == nil:
		t.Errorf("%s: no error", what)
	case !errors.Is(err, want):
		t.Errorf("%s: got %v, want %v", what, err, want)
	case strings.ContainsAny(err.Error(), "\n\r"):
		t.Errorf("%s: the error has more than one line: %q", what, err)
	}
}
