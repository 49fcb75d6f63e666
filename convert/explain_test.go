package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// An error of the operating system gets a remedy on the same line, and still wraps the original.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{syscall.ENOSPC, "free some space and run this again to resume"},
		{syscall.EDQUOT, "free some space and run this again to resume"},
		{syscall.EROFS, "set INGOT_HOME to use another store"},
		{fs.ErrPermission, "set INGOT_HOME to use another store"},
		{errors.New("something else"), "write blob: something else"},
	} {
		got := explain(fmt.Errorf("write blob: %w", c.err))
		if !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.want) || strings.Contains(got.Error(), "\n") {
			t.Errorf("%v: %v", c.err, got)
		}
	}
	if explain(nil) != nil {
		t.Error("no error became one")
	}
}
