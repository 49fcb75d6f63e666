//go:build unix

package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/internal/limits/place"
)

// TestStoreOfOthers opens no store that others could have changed. root alone opens one that another user owns.
func TestStoreOfOthers(t *testing.T) {
	for name, change := range map[string]func(root string) error{
		"its folder":  func(root string) error { return os.Chmod(root, 0o777) },
		"its blobs":   func(root string) error { return os.Chmod(filepath.Join(root, "blobs"), 0o757) },
		"its digests": func(root string) error { return os.Chmod(filepath.Join(root, BlobsDir), 0o777) },
		"its index":   func(root string) error { return os.Chmod(filepath.Join(root, "index.json"), 0o666) },
		"an empty folder": func(root string) error {
			return errors.Join(os.RemoveAll(root), os.Mkdir(root, 0), os.Chmod(root, 0o777))
		},
		"readable":          func(root string) error { return os.Chmod(root, 0o755) },
		"nobody's business": func(root string) error { return os.Chmod(root, 0o700) },
	} {
		root := filepath.Join(t.TempDir(), "store")
		if _, err := Open(root); err != nil {
			t.Fatal(err)
		}
		if err := change(root); err != nil {
			t.Fatal(err)
		}
		want := name != "readable" && name != "nobody's business"
		_, err := Open(root)
		_, errExisting := OpenExisting(root)
		if errors.Is(err, place.ErrUntrusted) != want || errors.Is(errExisting, place.ErrUntrusted) != want {
			t.Errorf("%s: %v, %v", name, err, errExisting)
		}
		t.Setenv(place.EnvTrust, root)
		if _, err := Open(root); err != nil {
			t.Errorf("%s, in INGOT_TRUST: %v", name, err)
		}
		t.Setenv(place.EnvTrust, "")
	}
	if os.Geteuid() != 0 {
		return
	}
	root := t.TempDir()
	if err := os.Chown(root, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(root); err != nil {
		t.Errorf("root and a user's store: %v", err)
	}
}
