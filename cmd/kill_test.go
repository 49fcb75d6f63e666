package cmd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
)

// killSizes are the sizes of the model's blobs, and how many times a transfer is killed.
type killSizes struct {
	large, tensor, tensors int
	small                  int // number of blobs of a few bytes
	chunk                  int // maximum number of bytes of a blob that a push repeats
	kills                  int
}

// TestKilledTransfers kills push and pull at random moments and runs the same command again. It must succeed with the
// same model, leave no stray files, and not repeat what was transferred. A long run does so 20 times with 300 MB in
// each direction.
func TestKilledTransfers(t *testing.T) {
	sizes := killSizes{large: 18 << 20, tensor: 2 << 20, tensors: 6, small: 12, chunk: 4 << 20, kills: 3}
	if runtest.Long() {
		sizes = killSizes{large: 128 << 20, tensor: 8 << 20, tensors: 20, small: 40, chunk: 16 << 20, kills: 20}
	}
	peer := newTestRegistry(t.Cleanup)
	source := filepath.Join(t.TempDir(), "source")
	name := peer.addr + "/team/model:v1"
	push := []string{"push", name, "--chunk-size", fmt.Sprint(sizes.chunk)}
	total := makeModel(t, source, name, sizes)

	// whole runs a command to its end and returns the number of ticks.
	whole := func(home string, args ...string) int {
		peer.count(0, nil)
		ingot(t, home, args...)
		return peer.counted().ticks
	}
	want := ingot(t, source, push...)
	peer.empty()
	ofPush := whole(source, push...)
	ofPull := whole(filepath.Join(t.TempDir(), "store"), "pull", name)

	for i := range sizes.kills {
		peer.empty()
		at := 1 + rand.N(ofPush)
		what := fmt.Sprintf("push %d, killed at tick %d of %d", i, at, ofPush)
		killed(t, peer, at, source, push...)
		if got := ingot(t, source, push...); got != want {
			t.Fatalf("%s: it prints %q, want %q", what, got, want)
		}
		checkTwice(t, what, peer.counted().received-total, sizes, sizes.chunk)
		checkStore(t, what, source, name, want)
		check := filepath.Join(t.TempDir(), "check") // what the registry stores
		if got := ingot(t, check, "pull", name); got != want {
			t.Fatalf("%s: what was pushed is pulled as %q, want %q", what, got, want)
		}
		os.RemoveAll(check)
	}
	for i := range sizes.kills {
		home := filepath.Join(t.TempDir(), "store")
		at := 1 + rand.N(ofPull)
		what := fmt.Sprintf("pull %d, killed at tick %d of %d", i, at, ofPull)
		killed(t, peer, at, home, "pull", name)
		checkBlobs(t, what, home)
		if got := ingot(t, home, "pull", name); got != want {
			t.Fatalf("%s: it prints %q, want %q", what, got, want)
		}
		checkTwice(t, what, peer.counted().sent-total, sizes, 8<<20) // the minimum part size of a pull
		checkStore(t, what, home, name, want)
		os.RemoveAll(home)
	}
}

// ingot runs a command to its end and returns its output.
func ingot(t *testing.T, home string, args ...string) string {
	t.Helper()
	c := command(home, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("ingot %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// command returns a command of the program with its own store.
func command(home string, args ...string) *exec.Cmd {
	c := exec.Command("ingot", args...)
	// Without this, the race detector delays the end of a process by a second.
	c.Env = append(os.Environ(), "INGOT_HOME="+home, "DOCKER_CONFIG="+home,
		"GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	return c
}

// killed runs a command and kills it at a tick of the registry. A command that ends before the tick must succeed.
func killed(t *testing.T, peer *testRegistry, at int, home string, args ...string) {
	t.Helper()
	c := command(home, args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	began := make(chan struct{})
	var hit atomic.Bool
	peer.count(at, func() {
		<-began
		hit.Store(true) // before the kill, since the process ends at once
		_ = c.Process.Kill()
	})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	close(began)
	err := c.Wait()
	peer.never()
	if err != nil && !hit.Load() {
		t.Fatalf("ingot %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
}

// makeModel stores a model of random blobs and returns their total size.
func makeModel(t *testing.T, home, name string, sizes killSizes) (total int64) {
	t.Helper()
	ctx := t.Context()
	store, err := store.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	n, err := manifest.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	release, err := store.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	random := rand.NewChaCha8([32]byte{1})
	var img manifest.Image
	add := func(size int) {
		w, err := store.NewBlob(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort()
		if _, err := io.CopyN(w, random, int64(size)); err != nil {
			t.Fatal(err)
		}
		d, _, err := w.Commit()
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("model.layers.%d.weight", len(img.Layers))
		img.Layers = append(img.Layers, manifest.Layer{Kind: manifest.KindTensor, Name: name, Digest: d, Size: int64(size)})
	}
	add(sizes.large)
	for range sizes.tensors {
		add(sizes.tensor)
	}
	for i := range sizes.small {
		add(100 + i)
	}
	if _, err := store.Put(ctx, n, img); err != nil {
		t.Fatal(err)
	}
	raw, err := store.ResolveRaw(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := manifest.Blobs(raw.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		total += b.Size
	}
	return total
}

// checkTwice checks that at most one chunk of each active blob was transferred again.
func checkTwice(t *testing.T, what string, twice int64, sizes killSizes, chunk int) {
	t.Helper()
	const active = registry.DefaultConcurrency
	most := int64(min(sizes.large, chunk) + (active-1)*min(sizes.tensor, chunk))
	t.Logf("%s: %d bytes went twice, at most %d may", what, twice, most)
	if twice < 0 || twice > most {
		t.Errorf("%s: %d bytes went twice, at most %d may", what, twice, most)
	}
}

// checkBlobs checks that every blob has the digest of its name, at any moment.
func checkBlobs(t *testing.T, what, home string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(home, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != filepath.Base(path) {
			t.Errorf("%s: blob %s has the contents of %s", what, filepath.Base(path), got)
		}
	}
}

// checkStore checks that the store contains exactly the intact model.
func checkStore(t *testing.T, what, home, name, digest string) {
	t.Helper()
	ingot(t, home, "fsck") // hashes every blob
	if got := ingot(t, home, "ls", "--format", "{{.Name}} {{.Digest}}"); got != name+" "+digest {
		t.Errorf("%s: the store has %q, want %s %s", what, got, name, digest)
	}
	err := filepath.WalkDir(filepath.Join(home, "ingest"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			t.Errorf("%s: %s is left", what, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
