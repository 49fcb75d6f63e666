package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// What the system says about the store comes with a remedy, on one line, and is still what it was.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{syscall.ENOSPC, "free some space and run this again"},
		{syscall.EDQUOT, "free some space and run this again"},
		{syscall.EROFS, "INGOT_HOME chooses another store"},
		{fs.ErrPermission, "INGOT_HOME chooses another store"},
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
