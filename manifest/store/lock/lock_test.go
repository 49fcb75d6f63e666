package lock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/manifest"
)

// A collection waits for writers, a limited time, and names them.
func TestSharedExcludesExclusive(t *testing.T) {
	locks := New(t.TempDir(), "ingot pull")
	locks.CollectWait = 20 * time.Millisecond
	first, err := locks.Shared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := locks.Shared(t.Context())
	if err != nil {
		t.Fatal("writers exclude each other:", err)
	}
	second()
	_, err = locks.Exclusive(t.Context())
	var busy *BusyError
	if !errors.As(err, &busy) || !errors.Is(err, manifest.ErrBusy) {
		t.Fatalf("a collection beside a writer: %v", err)
	}
	if want := []Holder{{PID: os.Getpid(), Command: "ingot pull"}}; len(busy.Holders) != 1 || busy.Holders[0] != want[0] {
		t.Errorf("holders %v, want %v", busy.Holders, want)
	}
	first()
	first() // may be called again
	release, err := locks.Exclusive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release()
	if left := locks.Holders(); left != nil {
		t.Errorf("holders %v after the last release", left)
	}
}

// A note about a process that died holds no lock: it is removed and not reported.
func TestHoldersForgetDeadProcesses(t *testing.T) {
	locks := New(t.TempDir(), "ingot pull")
	dir := filepath.Join(locks.Root, HoldersDir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(dir, "1-dead")
	if err := os.WriteFile(note, []byte(`{"pid":1,"command":"ingot create"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if list := locks.Holders(); list != nil {
		t.Errorf("holders %v", list)
	}
	if _, err := os.Stat(note); err == nil {
		t.Error("the note is left")
	}
}

func TestIndexWaits(t *testing.T) {
	locks := New(t.TempDir(), "")
	locks.IndexWait = 20 * time.Millisecond
	unlock, err := locks.Index(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Index(t.Context()); !errors.Is(err, manifest.ErrBusy) {
		t.Errorf("a held index lock: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := locks.Index(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled wait: %v", err)
	}
	unlock()
	if unlock, err = locks.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock()
}

// Take gets a lock file that its holder removes while another waits for it: both have held a file of that name.
func TestTakeAfterDrop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blob.lock")
	first, err := Take(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(t.Context(), path, Options{NoWait: true}); !errors.Is(err, manifest.ErrBusy) {
		t.Errorf("taken twice: %v", err)
	}
	second, err := Take(t.Context(), path, Options{Waiting: func() { Drop(first) }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("the second holder's file:", err)
	}
	Drop(second)
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is left")
	}
}

func TestTakeRefusesFolders(t *testing.T) {
	if _, err := Take(t.Context(), t.TempDir(), Options{}); !errors.Is(err, place.ErrNotRegular) {
		t.Errorf("a folder in place of the lock file: %v", err)
	}
}
