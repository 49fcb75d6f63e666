package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func openHistory(t *testing.T, path string) *History {
	t.Helper()
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func add(t *testing.T, h *History, list ...string) {
	t.Helper()
	for _, m := range list {
		if err := h.Add(m); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "history")
	h := openHistory(t, path)
	add(t, h, "one", "one", " secret", "two\nlines", "", "\u65e5\u672c")
	want := []string{"one", "two\nlines", "\u65e5\u672c"}
	if got := h.entries(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	other := openHistory(t, path) // another session at the same time
	add(t, h, "mine")
	add(t, other, "theirs")
	if got := openHistory(t, path).entries(); !slices.Equal(got, append(want, "mine", "theirs")) {
		t.Errorf("read again: %q", got)
	}
	if runtime.GOOS != "windows" {
		os.Chmod(path, 0o644)
		openHistory(t, path)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		folder, err := os.Stat(filepath.Dir(path))
		if err != nil || folder.Mode().Perm() != 0o700 {
			t.Errorf("mode of its folder %v, %v", folder.Mode(), err)
		}
	}
	h.Off = true
	add(t, h, "not this")
	if got := h.entries(); slices.Contains(got, "not this") {
		t.Errorf("kept although it is off: %q", got)
	}
}

// TestHistoryBounds checks that the file and the entries read from it stay bounded, and that damage costs only the
// damaged line.
func TestHistoryBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	for i := range 2*maxEntries + 10 {
		fmt.Fprintf(&b, "\"entry %d\"\n", i)
		if i == 2*maxEntries {
			b.WriteString("{garbage\n\"cut of\n")
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h := openHistory(t, path)
	if got := h.entries(); len(got) != maxEntries || got[len(got)-1] != fmt.Sprintf("entry %d", 2*maxEntries+9) {
		t.Errorf("%d entries, the last %q", len(got), got[len(got)-1])
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != maxEntries {
		t.Errorf("the file has %d lines, %v", strings.Count(string(text), "\n"), err)
	}
	add(t, h, strings.Repeat("x", maxEntry+1))
	if got := openHistory(t, path).entries(); len(got[len(got)-1]) > 100 {
		t.Error("a huge entry was written")
	}

	huge, _ := json.Marshal(strings.Repeat("y", 1000))
	if err := os.WriteFile(path, []byte(strings.Repeat(string(huge)+"\n\"z\"\n", maxHistoryBytes/1000+1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	openHistory(t, path)
	if info, err := os.Stat(path); err != nil || info.Size() > maxHistoryBytes {
		t.Errorf("%d bytes are left, %v", info.Size(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("files: %q", left)
	}
}

func TestHistoryKeys(t *testing.T) {
	const up, down = "\x1b[A", "\x1b[B"
	h := &History{}
	add(t, h, "one", "two\nlines", "three")
	for _, test := range []struct{ keys, want string }{
		{up, "three"},
		{up + up, "two\nlines"},
		{up + up + up + up, "one"}, // the second entry has two rows
		{up + up + up + up + up + up, "one"},
		{"\x10\x10\x10", "one"},
		{"\x10\x10\x10\x0e", "two\nlines"},
		{"draft" + up + down, "draft"},
		{"draft" + up + down + down + "!", "draft!"},
		{up + "!" + up + down, "three!"},
	} {
		e, _ := newEditor(t, test.keys+"\r", false, 40, 10)
		e.History = h
		if got, err := e.Read(context.Background(), "> ", ". "); got != test.want || err != nil {
			t.Errorf("%q: %q, %v; want %q", test.keys, got, err, test.want)
		}
	}
	if want := []string{"one", "two\nlines", "three"}; !slices.Equal(h.entries(), want) {
		t.Errorf("the history has changed: %q", h.entries())
	}
}
