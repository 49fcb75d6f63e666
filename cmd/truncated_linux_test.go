package cmd_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTruncatedBlob truncates a blob of a running model. Requests for the model fail with an error that names the blob,
// and `ingot run --local` with one line. The server and its other models keep running, and the model runs again when
// the blob is restored.
func TestTruncatedBlob(t *testing.T) {
	needEngine(t)
	home := filepath.Join(t.TempDir(), "store")
	ingot(t, home, "create", "other", "--quantize", "q4", filepath.Join("..", "testdata", "models", "demo"))
	shared := blobSizes(t, home)
	ingot(t, home, "create", "demo", filepath.Join("..", "testdata", "models", "demo"))
	own := blobSizes(t, home)
	maps.DeleteFunc(own, func(path string, _ int64) bool { return shared[path] > 0 })
	var blob string // the largest blob that only demo has
	for path, size := range own {
		if size > own[blob] {
			blob = path
		}
	}
	whole, err := os.ReadFile(blob)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(blob, 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("a file of the model was truncated while it was in use: %s has 0 of %d bytes; "+
		"`ingot fsck --repair` repairs the store", blob, len(whole))
	truncate := func() {
		if err := os.Truncate(blob, 0); err != nil {
			t.Fatal(err)
		}
	}
	restore := func() {
		if err := os.WriteFile(blob, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	s := serveStore(t, home, nil)
	s.whole(t, "/api/generate", `{"model":"other"}`)
	other := s.children(t)["other:latest"]
	response := s.post(t, "/api/generate", fmt.Sprintf(story, 100_000, "~"))
	defer response.Body.Close()
	if _, err := io.ReadFull(response.Body, make([]byte, 1)); err != nil { // the first token
		t.Fatal(err)
	}
	demo := s.children(t)["demo:latest"]
	truncate()
	rest, err := io.ReadAll(response.Body)
	lines := bytes.Split(bytes.TrimSpace(rest), []byte("\n"))
	if err != nil || !strings.Contains(string(lines[len(lines)-1]), "the model's process died: "+want) {
		t.Errorf("the response ends with %q, %v, want %q", lines[len(lines)-1], err, want)
	}
	gone(t, demo)
	next, _ := s.whole(t, "/api/generate", fmt.Sprintf(story, 5, "~"))["error"].(string)
	if !strings.Contains(next, "blob sha256:"+filepath.Base(blob)) || !strings.Contains(next, "fsck --repair") {
		t.Errorf("the next request: %q", next)
	}
	if last := s.whole(t, "/api/generate", strings.Replace(fmt.Sprintf(story, 5, "~"), "demo", "other",
		1)); last["eval_count"] != 5.0 {
		t.Errorf("the other model: %v", last)
	}
	if got := s.children(t)["other:latest"]; got != other {
		t.Errorf("the other model's process is %d, was %d", got, other)
	}
	restore()
	if last := s.whole(t, "/api/generate", fmt.Sprintf(story, 5, "~")); last["eval_count"] != 5.0 {
		t.Errorf("the model, whole again: %v", last)
	}

	c := command(home, "run", "demo", "--local", "--temperature", "0", "--ignore-eos", "--max-tokens", "100000",
		"Once upon a time")
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	truncate()
	_, _ = io.Copy(io.Discard, out)
	err = c.Wait()
	if c.ProcessState.ExitCode() != 1 || errs.String() != "ingot: "+want+"\n" {
		t.Errorf("run ends with %v, %q, want %q", err, errs.String(), want)
	}
}

// blobSizes returns the sizes of a store's blob files.
func blobSizes(t *testing.T, home string) map[string]int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes[path] = info.Size()
	}
	return sizes
}
