package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/storetest"
)

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		name, root string
		want       error // nil: any error
		says       string
	}{
		{"something else", filepath.Dir(write("photos/cat.jpg", "")), manifest.ErrNotStore, "cat.jpg"},
		{"newer layout", filepath.Dir(write("newer/oci-layout", `{"imageLayoutVersion":"2.0.0"}`)), manifest.ErrNotStore,
			`"2.0.0"`},
		{"broken layout", filepath.Dir(write("broken/oci-layout", `{`)), manifest.ErrNotStore, "oci-layout"},
		{"huge layout", filepath.Dir(write("huge/oci-layout", strings.Repeat(" ", 1<<20))), manifest.ErrTooLarge,
			"oci-layout"},
		{"a file", write("file", ""), nil, "file"},
		{"under a file", filepath.Join(write("file2", ""), "store"), nil, "file2"},
	}
	for _, tt := range tests {
		s, err := store.Open(tt.root)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, error %v, want %v", tt.name, s, err, tt.want)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, tt.says) || !strings.Contains(msg, tt.root) ||
			strings.Contains(msg, "\n") {
			t.Errorf("%s: %q does not say %q", tt.name, msg, tt.says)
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "photos")); len(entries) != 1 {
		t.Errorf("a rejected folder now contains %v", entries)
	}
}

func TestOpenUnwritable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("this user can write to read-only folders")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(filepath.Join(dir, "store"))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "INGOT_HOME") {
		t.Errorf("error %v", err)
	}
}

// Open creates a store in an empty folder and in a mount point, and completes one that another tool or a killed process
// left incomplete.
func TestOpenCreates(t *testing.T) {
	prepare := map[string]func(root string) error{
		"absent":      func(string) error { return nil },
		"empty":       func(root string) error { return os.MkdirAll(root, 0o755) },
		"mount point": func(root string) error { return os.MkdirAll(filepath.Join(root, "lost+found"), 0o700) },
		"half made": func(root string) error {
			return errors.Join(os.MkdirAll(filepath.Join(root, "blobs", "sha256"), 0o755),
				os.MkdirAll(filepath.Join(root, "ingest"), 0o755),
				os.WriteFile(filepath.Join(root, "index.lock"), nil, 0o644))
		},
		"other tool's": func(root string) error {
			return errors.Join(os.MkdirAll(root, 0o755), os.WriteFile(filepath.Join(root, "oci-layout"),
				[]byte(`{"imageLayoutVersion": "1.0.0", "x": 1}`), 0o644),
				os.WriteFile(filepath.Join(root, "index.json"), []byte(`{"schemaVersion":2,"manifests":[]}`), 0o644))
		},
	}
	for name, make := range prepare {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "a", "store")
			if err := make(root); err != nil {
				t.Fatal(err)
			}
			s, err := store.Open(root)
			if err != nil {
				t.Fatal(err)
			}
			if s.Root() != root {
				t.Errorf("Root() = %s, want %s", s.Root(), root)
			}
			if got := storetest.Names(t, s); len(got) != 0 {
				t.Errorf("a new store lists %v", got)
			}
			storetest.PutModel(t, s, "demo", "w")
			if s, err = store.Open(root); err != nil {
				t.Fatal(err)
			}
			if got := storetest.Names(t, s); !slices.Equal(got, []string{"demo:latest"}) {
				t.Errorf("opened again it lists %v", got)
			}
		})
	}
}

func TestOpenDefaultRoot(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("INGOT_HOME", "")
	s, err := store.Open("")
	if err != nil || s.Root() != filepath.Join(home, ".ingot") {
		t.Errorf("root %v, error %v", s, err)
	}
	t.Setenv("INGOT_HOME", filepath.Join(home, "models"))
	if s, err = store.Open(""); err != nil || s.Root() != filepath.Join(home, "models") {
		t.Errorf("root %v, error %v", s, err)
	}
}

func TestOpenConcurrently(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s, err := store.Open(root)
			if err != nil {
				t.Error(err)
				return
			}
			d, n, err := s.PutBytes(t.Context(), []byte("w"))
			if err != nil {
				t.Error(err)
				return
			}
			img := manifest.Image{Layers: []manifest.Layer{{Kind: manifest.KindTensor, Name: "w", Digest: d, Size: n}}}
			if _, err := s.Put(t.Context(), manifest.Name{Path: string(rune('a' + i))}, img); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s, err := store.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := storetest.Names(t, s); len(got) != 8 {
		t.Errorf("names %v", got)
	}
	storetest.CheckStore(t, s)
}
