//go:build unix

package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/registry/settings"
	"github.com/ingotml/ingot/server/keys"
)

// TestOpenFiles refuses files that decide who may do what if others may write them.
func TestOpenFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	t.Setenv("INGOT_CONFIG", file)
	for text, read := range map[string]func() error{
		strings.Repeat("k", 40): func() error { _, err := tokenFlag{file}.read(); return err },
		"key":                   func() error { _, err := keys.Open(file, nil); return err },
		"{}":                    func() error { _, err := settings.Load(); return err },
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for mode, refused := range map[os.FileMode]bool{0o600: false, 0o644: false, 0o646: true, 0o666: true, 0o602: true} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			if err := read(); errors.Is(err, place.ErrUntrusted) != refused || !refused && err != nil {
				t.Errorf("%s, mode %o: %v", text, mode, err)
			}
		}
	}
}
