//go:build unix

package manifest

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/opencontainers/go-digest"
)

// TestUploadDiskFull: the error of a disk that is full after all names the store and the remedy, not a file that has
// gone.
func TestUploadDiskFull(t *testing.T) {
	s := newStore(t)
	full := iotest.ErrReader(&os.PathError{Op: "write", Path: "sending-x", Err: syscall.ENOSPC})
	err := s.PutUpload(t.Context(), digest.FromString("a"), io.MultiReader(strings.NewReader("a"), full), UploadOptions{})
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), s.Root()) ||
		!strings.Contains(err.Error(), "INGOT_HOME") || strings.Contains(err.Error(), sendingPrefix) {
		t.Errorf("the error is %v", err)
	}
	checkTidy(t, s)
}
