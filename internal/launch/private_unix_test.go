//go:build unix

package launch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKeyIsPrivate writes a server's key into no file that others may read, and says so if they could before: in a new
// file, an open one, one behind a link, one that has the key already, and in copies.
func TestKeyIsPrivate(t *testing.T) {
	const key = "THEKEY-0123456789"
	for _, c := range Clients() {
		for _, mode := range []fs.FileMode{0, 0o600, 0o644, 0o664, 0o640, 0o606} {
			home := t.TempDir()
			file := filepath.Join(home, ".openclaw", "openclaw.json")
			sessions := filepath.Join(home, ".openclaw", "agents", "main", "sessions", "sessions.json")
			if mode != 0 {
				write(t, filepath.Join(home, "dotfiles", "real"), "{}", mode)
				if err := os.Chmod(filepath.Join(home, "dotfiles", "real"), mode); err != nil {
					t.Fatal(err)
				}
				write(t, sessions, `{"a": {"model": "x"}}`, 0o644)
				if err := os.Symlink(filepath.Join(home, "dotfiles", "real"), file); err != nil {
					t.Fatal(err)
				}
			}
			var notes []string
			setup := Setup{URL: "http://127.0.0.1:1", Key: key, Model: Model{Name: "m"}, Home: home,
				Note: func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }}
			for _, opened := range []bool{false, true} {
				if opened && mode != 0 && c.configure != nil {
					if err := os.Chmod(file, mode); err != nil { // as an older version left it
						t.Fatal(err)
					}
				}
				notes = nil
				changed, err := c.Configure(setup)
				if err != nil {
					t.Fatal(err)
				}
				isOpen := mode&othersMay != 0
				if c.configure != nil && (slices.Contains(notes, "") || (len(notes) == 1) != isOpen) {
					t.Errorf("%s, mode %o: notes %q", c.Name, mode, notes)
				}
				if c.configure != nil && slices.Contains(changed, file) != (!opened || isOpen) {
					t.Errorf("%s, mode %o, again %v: changed %q", c.Name, mode, opened, changed)
				}
				open(t, home, key)
			}
			if info, err := os.Stat(sessions); mode != 0 && (err != nil || info.Mode().Perm() != 0o644) {
				t.Errorf("%s: a file without a key has another mode", c.Name)
			}
		}
	}
}

// open reports files with a text that others may read.
func open(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), text) && info.Mode()&othersMay != 0 {
			t.Errorf("%s has the key and mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
