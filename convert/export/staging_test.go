package export

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/modelfile"
)

// model creates a model in a new store.
func model(t *testing.T, fixture string) (*store.Store, *store.Entry) {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name, err := manifest.ParseName("m")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "testdata", "models", fixture)
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: dir}}}
	if _, err := convert.Create(t.Context(), s, name, file, convert.Options{}); err != nil {
		t.Fatal(err)
	}
	entry, err := s.Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s, entry
}

// files returns the contents of all files in a folder, by their paths in it.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// onDisk is a file on a disk with some space left.
type onDisk struct {
	outFile
	left, written *atomic.Int64
}

func (f onDisk) Write(p []byte) (int, error) {
	left := f.left.Add(-int64(len(p)))
	if left >= 0 {
		f.written.Add(int64(len(p)))
		return f.outFile.Write(p)
	}
	n, err := f.outFile.Write(p[:max(0, int64(len(p))+left)])
	f.written.Add(int64(n))
	if err == nil {
		err = fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return n, err
}

// An export to a full disk keeps what it has written, and the next one writes only the rest.
func TestFullDisk(t *testing.T) {
	s, entry := model(t, "gemma4_assistant-pair") // with a draft, in a folder of its own
	opts := Options{MaxShard: 100_000, Parallel: 2}
	want := t.TempDir()
	if _, err := Folder(t.Context(), s, entry, want, opts); err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, text := range files(t, want) {
		total += int64(len(text))
	}
	dir := filepath.Join(t.TempDir(), "out")
	var left, written atomic.Int64
	opts.open = func(path string) (outFile, error) {
		f, err := openFile(path)
		return onDisk{f, &left, &written}, err
	}
	fails := 0
	for ; ; fails++ {
		left.Store(total / 5)
		_, err := Folder(t.Context(), s, entry, dir, opts)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "run this again to resume") {
			t.Fatal(err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 1 || list[0].Name() != stagingName {
			t.Fatalf("%v %v", list, err)
		}
		if fails > 20 {
			t.Fatal("the export makes no progress")
		}
	}
	if fails < 3 {
		t.Errorf("the disk was full %d times", fails)
	}
	if diff := cmp.Diff(files(t, want), files(t, dir)); diff != "" {
		t.Error("the resumed export differs")
	}
	if n := written.Load(); n != total {
		t.Errorf("%d bytes were written, of %d", n, total)
	}
}

// Nothing that lies in the hidden folder gets into the result, whatever wrote it.
func TestLeftoversAreNotTrusted(t *testing.T) {
	s, entry := model(t, "llama-default")
	want := t.TempDir()
	if _, err := Folder(t.Context(), s, entry, want, Options{}); err != nil {
		t.Fatal(err)
	}
	weights := files(t, want)["model.safetensors"]
	half := bytes.Clone([]byte(weights[:len(weights)/2]))
	half[len(half)/2] ^= 1
	outside := filepath.Join(t.TempDir(), "outside")
	for name, left := range map[string]map[string]string{
		"a flipped bit":   {"model.safetensors": string(half)},
		"a longer file":   {"model.safetensors": weights + "x", "config.json": strings.Repeat("{", 1<<20)},
		"another model's": {"model-00001-of-00002.safetensors": "x", "draft/config.json": "{}"},
	} {
		dir := t.TempDir()
		for file, text := range left {
			path := filepath.Join(dir, stagingName, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(dir, stagingName, "tokenizer.json")
		if err := errors.Join(os.WriteFile(outside, []byte("mine"), 0o644), os.MkdirAll(filepath.Dir(link), 0o755),
			os.Symlink(outside, link)); err != nil {
			t.Fatal(err)
		}
		if _, err := Folder(t.Context(), s, entry, dir, Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(files(t, want), files(t, dir)); diff != "" {
			t.Errorf("%s: the result differs", name)
		}
		if _, err := os.Stat(filepath.Join(dir, "draft")); !os.IsNotExist(err) {
			t.Errorf("%s: a folder of another export stays: %v", name, err)
		}
		if got := files(t, filepath.Dir(outside))["outside"]; got != "mine" {
			t.Errorf("%s: a file outside the folder was written through a link: %d bytes", name, len(got))
		}
	}
}

// An export writes nothing through a link in the place of its hidden folder.
func TestStagingLink(t *testing.T) {
	s, entry := model(t, "llama-default")
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, stagingName)); err != nil {
		t.Skip(err)
	}
	if _, err := Folder(t.Context(), s, entry, dir, Options{}); !errors.Is(err, ErrExport) {
		t.Errorf("got %v", err)
	}
	if got := files(t, outside); len(got) > 0 {
		t.Errorf("files outside the folder: %v", got)
	}
}

// An export that cannot fit fails before it writes anything.
func TestTooLittleSpace(t *testing.T) {
	s, entry := model(t, "llama-default")
	dir := filepath.Join(t.TempDir(), "out")
	o := Options{space: &disk.Space{Dir: dir, Free: func(string) (int64, bool) { return 1000, true }}}
	_, err := Folder(t.Context(), s, entry, dir, o)
	if !errors.Is(err, manifest.ErrNoSpace) || !strings.Contains(err.Error(), "1000 are free; free some space") {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s was left: %v", dir, err)
	}
}

// Two exports into one folder do not write the same files.
func TestTwoExports(t *testing.T) {
	s, entry := model(t, "llama-default")
	dir := t.TempDir()
	first, err := openTarget(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(t.Context(), s, entry, dir, Options{}); !errors.Is(err, ErrExport) ||
		!strings.Contains(err.Error(), "another export writes to it") {
		t.Error(err)
	}
	first.abandon()
	if _, err := Folder(t.Context(), s, entry, dir, Options{}); err != nil {
		t.Error(err)
	}
}
