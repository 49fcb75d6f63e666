package storetest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/ingotml/ingot/manifest/store"
	"golang.org/x/sys/unix"
)

// Reads counts how often files of a store are read, by any process.
type Reads struct {
	Index, Blobs int
}

// CountReads returns what do reads of a store's index and blobs.
func CountReads(t testing.TB, root string, do func()) (r Reads) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	// The system merges equal events in a row, so that only an event before each end keeps the ends apart.
	const mask = unix.IN_OPEN | unix.IN_CLOSE_NOWRITE
	for _, dir := range []string{root, filepath.Join(root, filepath.FromSlash(store.BlobsDir))} {
		if _, err := unix.InotifyAddWatch(fd, dir, mask); err != nil {
			t.Fatal(err)
		}
	}
	do()
	b := make([]byte, 1<<20)
	for {
		n, err := unix.Read(fd, b)
		if err == unix.EAGAIN {
			return r
		}
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < n; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&b[at]))
			from := at + unix.SizeofInotifyEvent
			name := strings.TrimRight(string(b[from:from+int(e.Len)]), "\x00")
			at = from + int(e.Len)
			switch {
			case e.Mask&unix.IN_Q_OVERFLOW != 0:
				t.Fatal("too many reads to count")
			case e.Mask&unix.IN_CLOSE_NOWRITE == 0:
			case name == "index.json":
				r.Index++
			case len(name) == 64:
				r.Blobs++
			}
		}
	}
}

// Copies gives a model further names.
func Copies(t testing.TB, s *store.Store, name string, n int) {
	t.Helper()
	for i := range n {
		if err := s.Tag(t.Context(), MustName(t, name), MustName(t, fmt.Sprintf("copies/of:v%d", i))); err != nil {
			t.Fatal(err)
		}
	}
}
