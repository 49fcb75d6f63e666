//go:build unix

package ingest_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

// TestUploadDiskFull checks that the error for a full disk names the store and the remedy, and not the temporary file.
func TestUploadDiskFull(t *testing.T) {
	s := storetest.NewStore(t)
	full := iotest.ErrReader(&os.PathError{Op: "write", Path: "sending-x", Err: syscall.ENOSPC})
	err := ingest.PutUpload(t.Context(), s, digest.FromString("a"), io.MultiReader(strings.NewReader("a"), full),
		ingest.UploadOptions{})
	if !errors.Is(err, manifest.ErrNoSpace) || !strings.Contains(err.Error(), s.Root()) ||
		!strings.Contains(err.Error(), "INGOT_HOME") || strings.Contains(err.Error(), ingest.SendingPrefix) {
		t.Errorf("the error is %v", err)
	}
	storetest.CheckTidy(t, s)
}
