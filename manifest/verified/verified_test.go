package verified

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

const digest = "3afd3243658e39e28f84e8e65775f6fbe6fd7fcc8de68bc35570756746407d8c"

// file writes a file whose last change is long ago, as far as the system lets it be set, and describes it.
func file(t *testing.T, path, text string) os.FileInfo {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	return stat(t, path)
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// settle waits until the last change of a file is old enough to be recorded.
func settle() { time.Sleep(settled + 50*time.Millisecond) }

// A record holds for a file as it is, and for nothing else.
func TestRecords(t *testing.T) {
	r, path := Records(filepath.Join(t.TempDir(), "records")), filepath.Join(t.TempDir(), "blob")
	info := file(t, path, "one")
	if _, own := system(info), system(info) != ""; own {
		r.Add(info, path, digest) // its inode was changed just now
		if r.Has(info, path, digest) {
			t.Error("a file that was just written is recorded")
		}
		settle()
	}
	r.Add(info, path, digest)
	other := "00" + digest[2:]
	if !r.Has(info, path, digest) || r.Has(info, path, other) || r.Has(info, path+"2", digest) ||
		Records("").Has(info, path, digest) {
		t.Error("what is recorded")
	}
	for what, change := range map[string]func() os.FileInfo{
		"size": func() os.FileInfo { return file(t, path, "three") },
		"time": func() os.FileInfo {
			now := time.Now()
			_ = os.Chtimes(path, now, now)
			return stat(t, path)
		},
	} {
		if r.Has(change(), path, digest) {
			t.Errorf("another %s, and the record holds", what)
		}
	}
	// Other bytes with the size and time of before, which the system tells by the time of the change.
	_ = os.WriteFile(path, []byte("two"), 0o644)
	_ = os.Chtimes(path, info.ModTime(), info.ModTime())
	if again := stat(t, path); system(again) != "" && r.Has(again, path, digest) {
		t.Error("other bytes, and the record holds")
	}
}

// A damaged record is none.
func TestDamaged(t *testing.T) {
	r, path := Records(t.TempDir()), filepath.Join(t.TempDir(), "blob")
	info := file(t, path, "one")
	settle()
	r.Add(info, path, digest)
	at := r.place(path)
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		bad := append([]byte{}, text...)
		bad[i] ^= 1
		if err := os.WriteFile(at, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if r.Has(info, path, digest) {
			t.Errorf("a record with another byte %d holds", i)
		}
	}
	for _, n := range []int{0, 1, len(text) - 1} {
		_ = os.WriteFile(at, text[:n], 0o600)
		if r.Has(info, path, digest) {
			t.Errorf("%d bytes of a record hold", n)
		}
	}
}

// The folder has a bound, and the oldest records go first. One that cannot be written is no error.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	r, path := Records(dir), filepath.Join(t.TempDir(), "blob")
	for i := range limits.VerifiedFiles + 1 {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Duration(i+1) * time.Minute)
		_ = os.Chtimes(name, at, at)
	}
	info := file(t, path, "one")
	settle()
	r.Add(info, path, digest)
	entries, _ := os.ReadDir(dir)
	if len(entries) > limits.VerifiedFiles || !r.Has(info, path, digest) {
		t.Errorf("%d records", len(entries))
	}
	if _, err := os.Stat(filepath.Join(dir, "0")); err != nil {
		t.Error("a young record is gone")
	}
	Records(path).Add(info, path, digest) // not a folder
}
