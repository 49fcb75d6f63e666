package store_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/storetest"
)

func secret(t *testing.T, s *store.Store) []byte {
	t.Helper()
	b, err := s.Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != store.SecretSize || bytes.Equal(b, make([]byte, store.SecretSize)) {
		t.Fatalf("the secret is %x", b)
	}
	return b
}

// TestSecret checks that the secret is created once, that only its owner can read it, and that no command treats it as
// damage.
func TestSecret(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "a")
	if got := storetest.Files(t, s, "."); slices.Contains(got, store.SecretFile) {
		t.Errorf("the secret exists before it is needed: %v", got)
	}
	first := secret(t, s)
	again, err := store.Open(s.Root())
	if err != nil {
		t.Fatal(err)
	}
	if got := secret(t, again); !bytes.Equal(got, first) {
		t.Errorf("the secret is %x, then %x", first, got)
	}
	info, err := os.Lstat(s.Path(store.SecretFile))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if other := secret(t, storetest.NewStore(t)); bytes.Equal(other, first) {
		t.Errorf("two stores have the secret %x", other)
	}
	store.Clock(func() time.Time { return time.Now().Add(1000 * time.Hour) })(s) // everything is old
	if r, err := collect.Prune(t.Context(), s, collect.PruneOptions{Unfinished: true}); err != nil || len(r.Items) > 0 {
		t.Errorf("prune: %+v, %v", r, err)
	}
	if r, err := fsck.Run(t.Context(), s, fsck.Options{Repair: true}); err != nil || len(r.Problems) > 0 {
		t.Errorf("fsck: %+v, %v", r, err)
	}
	storetest.CheckTidy(t, s)
	if got := secret(t, s); !bytes.Equal(got, first) {
		t.Errorf("prune or fsck changed the secret %x to %x", first, got)
	}
}

// TestSecretIsReplaced checks that a secret that others may have read, or that is damaged, is replaced.
func TestSecretIsReplaced(t *testing.T) {
	s := storetest.NewStore(t)
	old := secret(t, s)
	for name, spoil := range map[string]func(path string) error{
		"short": func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"long":  func(path string) error { return os.WriteFile(path, make([]byte, store.SecretSize+1), 0o600) },
		"empty": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"link":  func(path string) error { return os.Symlink("index.json", path) },
		"group": func(path string) error { return exposed(path, 0o640) },
		"other": func(path string) error { return exposed(path, 0o604) },
	} {
		if runtime.GOOS == "windows" && (name == "group" || name == "other" || name == "link") {
			continue // Windows has no such modes
		}
		path := s.Path(store.SecretFile)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		got := secret(t, s)
		info, err := os.Lstat(path)
		if err != nil || bytes.Equal(got, old) || !info.Mode().IsRegular() || disk.OthersHaveAccess(info.Mode()) {
			t.Errorf("%s: the secret is %x, before it was %x; %v, %v", name, got, old, info.Mode(), err)
		}
		old = got
	}
}

func exposed(path string, mode fs.FileMode) error {
	if err := os.WriteFile(path, bytes.Repeat([]byte("k"), store.SecretSize), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// TestSecretAtOnce checks that processes that create the secret concurrently agree on one.
func TestSecretAtOnce(t *testing.T) {
	s := storetest.NewStore(t)
	var children []*exec.Cmd
	for range 4 {
		cmd := storetest.Child(t, "secret", s.Root())
		cmd.Stdout, cmd.Stderr = new(strings.Builder), new(strings.Builder)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %v", err, cmd.Stderr)
		}
	}
	want := fmt.Sprintf("%x\n", secret(t, s))
	for _, cmd := range children {
		if got := fmt.Sprint(cmd.Stdout); got != want {
			t.Errorf("a process has the secret %s, want %s", got, want)
		}
	}
}
