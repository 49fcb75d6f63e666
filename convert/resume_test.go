package convert

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// childDir makes the test binary, which TestKill kills, create a model from that folder.
const childDir = "INGOT_TEST_CREATE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := createInChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func createInChild(dir string) error {
	store, err := store.Open("")
	if err != nil {
		return err
	}
	name, err := manifest.ParseName("x")
	if err != nil {
		return err
	}
	fmt.Println("ready")
	file := &modelfile.File{Commands: []modelfile.Command{{Name: modelfile.From, Value: dir}}}
	_, err = Create(context.Background(), store, name, file, Options{Precision: recipe.Precision{Type: quantize.Int4}})
	return err
}

// bigConfig describes a model of some MB, so that most kills happen while tensors are written.
var bigConfig = strings.NewReplacer(`"vocab_size": 256`, `"vocab_size": 4096`, `"hidden_size": 128`,
	`"hidden_size": 256`, `"num_hidden_layers": 2`, `"num_hidden_layers": 6`).Replace(wideConfig)

// checkModel reads every blob of a model and verifies its digest.
func checkModel(t *testing.T, store *store.Store, name string) {
	t.Helper()
	for _, l := range mustResolve(t, store, name).Image.Layers {
		if b, err := store.ReadBlob(l.Digest, 64<<20); err != nil || int64(len(b)) != l.Size {
			t.Errorf("%s: %d bytes, want %d, %v", l.Name, len(b), l.Size, err)
		}
	}
}

// However often a create is killed, the next one makes the same image as an undisturbed one.
func TestKill(t *testing.T) {
	dir := finiteWeights(tiny(t, bigConfig, 1)).write(t, t.TempDir())
	options := Options{Precision: recipe.Precision{Type: quantize.Int4}}
	begun := time.Now()
	want := mustCreate(t, openStore(t), "x", from(dir), options)
	took := time.Since(begun)

	resumed := 0
	var st *store.Store
	for i := range 20 {
		if st == nil {
			st = openStore(t)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir, "INGOT_HOME="+st.Root(),
			"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 8)); err != nil {
			t.Fatal(err, stderr.String())
		}
		time.Sleep(rand.N(took + took/4))
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if stderr.Len() > 0 {
			t.Fatalf("the child failed by itself: %s", stderr.String())
		}
		if i%2 == 0 {
			continue // two kills in a row
		}
		r := mustCreate(t, st, "x", from(dir), options)
		if r.Digest != want.Digest {
			t.Fatalf("digest %s, want %s", r.Digest, want.Digest)
		}
		if r.Resumed > 0 {
			resumed++
		}
		checkModel(t, st, "x")
		checkTidyFolders(t, st)
		st = nil
	}
	t.Logf("%d of 10 runs went on from what was there", resumed)
}

// checkTidyFolders verifies that no unfinished run is left. Files of killed processes stay until the next collection.
func checkTidyFolders(t *testing.T, s *store.Store) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.Root(), "ingest", "create-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

// A resumed run does not repeat completed work, unless the sources or the plan have changed.
func TestResume(t *testing.T) {
	interrupt := func(t *testing.T, st *store.Store, dir string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := Create(ctx, st, modelName(t, "x"), from(dir), Options{Parallel: 1, Progress: func(e write.Event) {
			if e.Tensors == 10 {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
	}
	for _, c := range []struct {
		name    string
		change  func(t *testing.T, dir string) string
		options Options
		resumes bool
	}{
		{"same", func(_ *testing.T, dir string) string { return dir }, Options{}, true},
		{"moved", func(t *testing.T, dir string) string {
			to := filepath.Join(t.TempDir(), "moved")
			if err := os.Rename(dir, to); err != nil {
				t.Fatal(err)
			}
			return to
		}, Options{}, true},
		{
			"other number at once", func(_ *testing.T, dir string) string { return dir }, Options{Parallel: 3, Memory: 1 << 28},
			true,
		},
		{
			"other type", func(_ *testing.T, dir string) string { return dir },
			Options{Precision: recipe.Precision{Type: quantize.ToF32}}, false,
		},
		{"touched", func(t *testing.T, dir string) string {
			later := time.Now().Add(time.Hour)
			if err := os.Chtimes(filepath.Join(dir, "model.safetensors"), later, later); err != nil {
				t.Fatal(err)
			}
			return dir
		}, Options{}, false},
		{"other file", func(t *testing.T, dir string) string {
			writeFile(t, filepath.Join(dir, "LICENSE"), []byte("terms"))
			return dir
		}, Options{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := openStore(t)
			dir := filepath.Join(t.TempDir(), "model")
			finiteWeights(tiny(t, tinyConfig, 1)).write(t, dir)
			interrupt(t, store, dir)
			dir = c.change(t, dir)
			var first, last write.Event
			c.options.Progress = func(e write.Event) {
				if first == (write.Event{}) {
					first = e
				}
				last = e
			}
			r := mustCreate(t, store, "x", from(dir), c.options)
			if r.Resumed > 0 != c.resumes || last.Resumed > 0 != c.resumes {
				t.Errorf("%d bytes (%+v) were there, want some: %v", r.Resumed, last, c.resumes)
			}
			if last.Bytes != last.TotalBytes || last.Tensors != last.TotalTensors {
				t.Errorf("last event %+v", last)
			}
			checkModel(t, store, "x")
		})
	}
}
