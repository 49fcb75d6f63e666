package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/limits/testrun"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/ingotml/ingot/registry"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/opencontainers/go-digest"
)

// soakTime returns how long TestSoak runs: INGOT_SOAK if it is a duration, else a minute in a long run and 5 seconds in
// others.
func soakTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("INGOT_SOAK")); err == nil && d > 0 {
		return d
	}
	return testrun.Pick(5*time.Second, time.Minute)
}

// soakProcesses is the number of concurrent processes.
const soakProcesses = 10

func init() { storetest.Jobs["soak"] = soak }

// TestSoak runs processes that create, pull, push, copy, tag, read, remove, check and prune at random in one store. No
// process may fail and no named model may be lost. At the end, fsck finds no problems, and removing everything leaves
// no files.
func TestSoak(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	var children []*exec.Cmd
	addr := soakRegistry(t)
	for range soakProcesses {
		c := storetest.Child(t, fmt.Sprintf("soak:%s,%s", soakTime(), addr), root)
		c.Stdout, c.Stderr = new(bytes.Buffer), new(bytes.Buffer)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() }) // no effect after Wait
		children = append(children, c)
	}
	done := map[string]int{}
	for _, c := range children {
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, c.Stderr)
			continue
		}
		var counts map[string]int
		if err := json.Unmarshal(c.Stdout.(*bytes.Buffer).Bytes(), &counts); err != nil {
			t.Error(err)
		}
		for what, n := range counts {
			done[what] += n
		}
	}
	t.Logf("%v", done)
	for _, o := range soakOps {
		if done[o.name] == 0 && soakTime() >= time.Minute { // a busy machine may do little in a few seconds
			t.Errorf("no %s has succeeded", o.name)
		}
	}
	s, err := store.OpenExisting(root)
	if err != nil {
		t.Fatal(err)
	}
	r, err := fsck.Run(t.Context(), s, fsck.Options{})
	if err != nil || len(r.Problems) > 0 {
		t.Errorf("fsck: %+v, %v", r, err)
	}
	list, err := s.List(t.Context())
	if err != nil || len(list) == 0 {
		t.Errorf("%d models are left, %v", len(list), err)
	}
	for _, m := range list {
		if err := readAll(t.Context(), s, m.Name); err != nil {
			t.Error(err)
		}
	}
	for _, m := range list {
		if err := collect.Remove(t.Context(), s, m.Name); err != nil {
			t.Error(err)
		}
	}
	if _, err := collect.Prune(t.Context(), s, collect.PruneOptions{Unfinished: true}); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"blobs/sha256", "ingest", "holders", "quarantine"} {
		if entries, _ := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir))); len(entries) > 0 {
			t.Errorf("left in %s: %v", dir, entries)
		}
	}
}

// soakRegistry starts a registry with models to pull.
func soakRegistry(t *testing.T) (addr string) {
	t.Helper()
	handler := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	server := httptest.NewServer(handler)
	t.Cleanup(func() { server.Close(); handler.Close() })
	addr = strings.TrimPrefix(server.URL, "http://")
	s, err := store.Open(filepath.Join(t.TempDir(), "origin"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := registry.New(registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range soakRemotes {
		var img manifest.Image
		for l := range 5 {
			text := soakText()
			if l == 0 {
				text = strings.Repeat(fmt.Sprintf("large %d\n", i), 200_000)
			}
			d, n, err := s.PutBytes(t.Context(), []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			img.Layers = append(img.Layers, soakLayer(l, d, n))
		}
		name := manifest.Name{Path: fmt.Sprint("m", i), Tag: "t"}
		if _, err := s.Put(t.Context(), name, img); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Push(t.Context(), s, name, remoteName(addr, i), registry.PushOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return addr
}

// soakRemotes is the number of models in the registry.
const soakRemotes = 4

func remoteName(addr string, i int) manifest.Name {
	return manifest.Name{Host: addr, Path: fmt.Sprint("origin/m", i), Tag: "t"}
}

// worker is the state of a process of TestSoak.
type worker struct {
	s      *store.Store
	client *registry.Client
	addr   string
}

// soakOps are the operations that a process chooses from, with their relative frequency. An operation returns false if
// it had nothing to do or the store was busy.
var soakOps = []struct {
	name   string
	weight int
	do     func(*worker, context.Context) (bool, error)
}{
	{"create", 6, (*worker).create},
	{"resume", 2, (*worker).resume},
	{"pull", 5, (*worker).pull},
	{"push", 2, (*worker).push},
	{"tag", 5, (*worker).tag},
	{"copy", 3, (*worker).copy},
	{"read", 8, (*worker).read},
	{"remove", 6, (*worker).remove},
	{"prune", 3, (*worker).prune},
	{"fsck", 1, (*worker).fsck},
	{"list", 2, (*worker).list},
}

// soak runs random operations for the given time and prints how often each succeeded.
func soak(ctx context.Context, s *store.Store, arg string) error {
	limit, addr, _ := strings.Cut(arg, ",")
	d, err := time.ParseDuration(limit)
	if err != nil {
		return err
	}
	client, err := registry.New(registry.Options{})
	if err != nil {
		return err
	}
	w := &worker{s, client, addr}
	var deck []int
	for i, o := range soakOps {
		for range o.weight {
			deck = append(deck, i)
		}
	}
	store.Waits(200*time.Millisecond, time.Minute)(s)
	done := map[string]int{}
	// The pauses let collections acquire the lock.
	for begun := time.Now(); time.Since(begun) < d; time.Sleep(rand.N(20 * time.Millisecond)) {
		o := soakOps[deck[rand.N(len(deck))]]
		ok, err := o.do(w, ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		if ok {
			done[o.name]++
		}
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}

// soakName returns one of a few names, so that the processes compete for them.
func soakName() manifest.Name {
	hosts := []string{"", "", "registry.example.com"}
	return manifest.Name{Host: hosts[rand.N(len(hosts))], Path: fmt.Sprintf("team/m%d", rand.N(4)),
		Tag: fmt.Sprintf("t%d", rand.N(2))}
}

// soakText returns one of a few contents, so that models share blobs.
func soakText() string {
	n := rand.N(40)
	return strings.Repeat(fmt.Sprintf("contents %d\n", n), 1+n*n)
}

func (w *worker) create(ctx context.Context) (bool, error) {
	release, err := w.s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	var img manifest.Image
	for i := range 1 + rand.N(6) {
		b, err := w.s.NewBlob(ctx)
		if err != nil {
			return false, err
		}
		defer b.Abort()
		if _, err := io.WriteString(b, soakText()); err != nil {
			return false, err
		}
		d, n, err := b.Commit()
		if err != nil {
			return false, err
		}
		img.Layers = append(img.Layers, soakLayer(i, d, n))
	}
	_, err = w.s.Put(ctx, soakName(), img)
	return true, err
}

func soakLayer(i int, d digest.Digest, n int64) manifest.Layer {
	return manifest.Layer{Kind: manifest.KindTensor, Name: fmt.Sprint("t", i), Digest: d, Size: n}
}

// resume creates a model with an Ingest, as commands do. A random quarter of the runs end before Put, and a later run
// with the same key resumes them.
func (w *worker) resume(ctx context.Context) (bool, error) {
	release, err := w.s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	in, err := ingest.Open(ctx, w.s, digest.FromString(fmt.Sprint("run", rand.N(3))))
	if err != nil {
		return false, err
	}
	defer in.Close()
	var img manifest.Image
	for i := range 4 {
		name := fmt.Sprint(i)
		d, n, ok := in.Lookup(name)
		if !ok {
			b, err := in.NewBlob(name)
			if err != nil {
				return false, err
			}
			defer b.Abort()
			if _, err := io.WriteString(b, soakText()); err != nil {
				return false, err
			}
			if d, n, err = b.Seal(ctx); err != nil {
				return false, err
			}
		}
		img.Layers = append(img.Layers, soakLayer(i, d, n))
	}
	if err := in.Publish(); err != nil {
		return false, err
	}
	if rand.N(4) == 0 {
		return false, nil
	}
	if _, err := w.s.Put(ctx, soakName(), img); err != nil {
		return false, err
	}
	in.Remove()
	return true, nil
}

func (w *worker) tag(ctx context.Context) (bool, error) {
	return absentIsFine(w.s.Tag(ctx, w.name(), soakName()))
}

func (w *worker) copy(ctx context.Context) (bool, error) {
	formats := []string{"", "", manifest.FormatModelPack, manifest.FormatOllama}
	_, err := w.s.Copy(ctx, w.name(), soakName(), formats[rand.N(len(formats))])
	if errors.Is(err, manifest.ErrInvalidImage) || errors.Is(err, manifest.ErrBlobMissing) {
		return false, nil // a partial model
	}
	return absentIsFine(err)
}

// name returns the name of a model that may exist, local or from the registry.
func (w *worker) name() manifest.Name {
	if rand.N(3) == 0 {
		return remoteName(w.addr, rand.N(soakRemotes))
	}
	return soakName()
}

// pull pulls a model, or a part of it.
func (w *worker) pull(ctx context.Context) (bool, error) {
	var o registry.PullOptions
	if rand.N(4) == 0 {
		o.Only = []string{"t[12]"}
	}
	_, err := w.client.Pull(ctx, w.s, remoteName(w.addr, rand.N(soakRemotes)), o)
	return err == nil, err
}

func (w *worker) push(ctx context.Context) (bool, error) {
	to := manifest.Name{Host: w.addr, Path: fmt.Sprint("new/m", rand.N(3)), Tag: "t"}
	_, err := w.client.Push(ctx, w.s, w.name(), to, registry.PushOptions{})
	if errors.Is(err, manifest.ErrBlobMissing) {
		return false, nil // a partial model
	}
	return absentIsFine(err)
}

// read reads a model without a lock, as the runtime does. If that fails, the model must have been removed or replaced
// in the meantime.
func (w *worker) read(ctx context.Context) (bool, error) {
	name := w.name()
	for range 20 {
		before, err := w.s.ResolveRaw(ctx, name)
		if err != nil {
			return absentIsFine(err)
		}
		err = readAll(ctx, w.s, name)
		if err == nil {
			return true, nil
		}
		if after, again := w.s.ResolveRaw(ctx, name); again == nil && after.Descriptor.Digest == before.Descriptor.Digest &&
			after.Descriptor.Annotations["org.ingotml.modified"] == before.Descriptor.Annotations["org.ingotml.modified"] {
			return false, err
		}
	}
	return false, nil
}

func readAll(ctx context.Context, s *store.Store, name manifest.Name) error {
	raw, err := s.ResolveRaw(ctx, name)
	if err != nil {
		return err
	}
	e, err := s.Entry(raw)
	if err != nil {
		return err
	}
	for _, l := range e.Image.Layers {
		if _, err := s.ReadBlob(l.Digest, l.Size); err != nil && !(raw.Partial() && errors.Is(err, manifest.ErrBlobMissing)) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (w *worker) remove(ctx context.Context) (bool, error) {
	err := collect.Remove(ctx, w.s, w.name())
	if errors.Is(err, manifest.ErrBlobsKept) && errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	return absentIsFine(err)
}

func (w *worker) prune(ctx context.Context) (bool, error) {
	_, err := collect.Prune(ctx, w.s, collect.PruneOptions{DryRun: rand.N(4) == 0, Unfinished: rand.N(4) == 0})
	if errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

// fsck must find no problems while other processes work.
func (w *worker) fsck(ctx context.Context) (bool, error) {
	r, err := fsck.Run(ctx, w.s, fsck.Options{Repair: rand.N(2) == 0})
	if errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	if err == nil && len(r.Problems) > 0 {
		err = fmt.Errorf("problems: %+v", r.Problems)
	}
	return err == nil, err
}

func (w *worker) list(ctx context.Context) (bool, error) {
	if _, err := collect.ListShared(ctx, w.s); err != nil {
		return false, err
	}
	_, err := collect.UsageOf(ctx, w.s)
	return err == nil, err
}

func absentIsFine(err error) (bool, error) {
	if errors.Is(err, manifest.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
