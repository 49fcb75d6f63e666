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

// TestUploadDiskFull checks that the error for a full disk names the store and the remedy, and not the temporary file.
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
