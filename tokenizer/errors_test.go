package tokenizer

import (
	"errors"
	"strings"
	"testing"
)

// checkError wants an error of the kind, in one line.
func checkError(t *testing.T, what string, err, want error) {
	t.Helper()
	if len(what) > 80 {
		what = what[:80]
	}
	switch {
	case err == nil:
		t.Errorf("%s: no error", what)
	case !errors.Is(err, want):
		t.Errorf("%s: %v, not %v", what, err, want)
	case strings.ContainsAny(err.Error(), "\n\r"):
		t.Errorf("%s: more than one line: %q", what, err)
	}
}
