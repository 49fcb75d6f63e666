package manifest_test

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

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
	"github.com/opencontainers/go-digest"
)

// soakTime is how long the processes of TestSoak work: 5 seconds, or what INGOT_SOAK says, or a minute if that is no duration.
func soakTime() time.Duration {
	v := os.Getenv("INGOT_SOAK")
	if v == "" {
		return 5 * time.Second
	}
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		return d
	}
	return time.Minute
}

// soakProcesses work in one store at once.
const soakProcesses = 10

func init() { manifest.ChildJobs["soak"] = soak }

// TestSoak lets processes create, pull, push, copy, tag, read, remove, check and prune at random in one store. None of them fails, none of
// what has a name is lost, and afterwards nothing is wrong and nothing is left over.
func TestSoak(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	var children []*exec.Cmd
	addr := soakRegistry(t)
	for range soakProcesses {
		c := manifest.Child(t, fmt.Sprintf("soak:%s,%s", soakTime(), addr), root)
		c.Stdout, c.Stderr = new(bytes.Buffer), new(bytes.Buffer)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() }) // after Wait it does nothing
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
		if done[o.name] == 0 && soakTime() >= time.Minute { // a busy machine does little in a few seconds
			t.Errorf("no %s has come to its end", o.name)
		}
	}
	s, err := manifest.OpenExisting(root)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Fsck(t.Context(), manifest.FsckOptions{})
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
		if err := s.Remove(t.Context(), m.Name); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Prune(t.Context(), manifest.PruneOptions{Unfinished: true}); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"blobs/sha256", "ingest", "holders", "quarantine"} {
		if entries, _ := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir))); len(entries) > 0 {
			t.Errorf("left in %s: %v", dir, entries)
		}
	}
}

// soakRegistry is a registry that has some models to pull.
func soakRegistry(t *testing.T) (addr string) {
	t.Helper()
	handler := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	server := httptest.NewServer(handler)
	t.Cleanup(func() { server.Close(); handler.Close() })
	addr = strings.TrimPrefix(server.URL, "http://")
	s, err := manifest.Open(filepath.Join(t.TempDir(), "origin"))
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

// soakRemotes is how many models the registry has.
const soakRemotes = 4

func remoteName(addr string, i int) manifest.Name {
	return manifest.Name{Host: addr, Path: fmt.Sprint("origin/m", i), Tag: "t"}
}

// worker is one process of the soak.
type worker struct {
	s      *manifest.Store
	client *registry.Client
	addr   string
}

// soakOps are what a process chooses from. One that gives false found nothing to do, or the store busy.
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

// soak does something at random until its time is over, and prints how often it did what.
func soak(ctx context.Context, s *manifest.Store, arg string) error {
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
	s.SetCollectWait(200 * time.Millisecond)
	done := map[string]int{}
	for begun := time.Now(); time.Since(begun) < d; time.Sleep(rand.N(20 * time.Millisecond)) { // so that a collection gets its turn
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

// soakName is one of few names, so that the processes meet.
func soakName() manifest.Name {
	hosts := []string{"", "", "registry.example.com"}
	return manifest.Name{Host: hosts[rand.N(len(hosts))], Path: fmt.Sprintf("team/m%d", rand.N(4)), Tag: fmt.Sprintf("t%d", rand.N(2))}
}

// soakText is one of few contents, so that models share blobs.
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

// soakResume creates as commands do: in a folder that is kept when the run ends early, as every second one does here.
func (w *worker) resume(ctx context.Context) (bool, error) {
	release, err := w.s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	in, err := w.s.OpenIngest(ctx, digest.FromString(fmt.Sprint("run", rand.N(3))))
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
		return false, nil // pulled in part
	}
	return absentIsFine(err)
}

// name is a model that may be there: a local one, or one of the registry.
func (w *worker) name() manifest.Name {
	if rand.N(3) == 0 {
		return remoteName(w.addr, rand.N(soakRemotes))
	}
	return soakName()
}

// pull brings a model here, or a part of it.
func (w *worker) pull(ctx context.Context) (bool, error) {
	var o registry.PullOptions
	if rand.N(4) == 0 {
		o.Only = []string{"t[12]"}
	}
	_, err := w.client.Pull(ctx, w.s, remoteName(w.addr, rand.N(soakRemotes)), o)
	return err == nil, err
}

func (w *worker) push(ctx context.Context) (bool, error) {
	_, err := w.client.Push(ctx, w.s, w.name(), manifest.Name{Host: w.addr, Path: fmt.Sprint("new/m", rand.N(3)), Tag: "t"}, registry.PushOptions{})
	if errors.Is(err, manifest.ErrBlobMissing) {
		return false, nil // pulled in part
	}
	return absentIsFine(err)
}

// soakRead reads a model as one that runs it does, without a lock. It may be removed meanwhile; then another name, or none, is there.
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
		if after, again := w.s.ResolveRaw(ctx, name); again == nil && after.Descriptor.Digest == before.Descriptor.Digest && after.Descriptor.Annotations["org.ingotml.modified"] == before.Descriptor.Annotations["org.ingotml.modified"] {
			return false, err
		}
	}
	return false, nil
}

func readAll(ctx context.Context, s *manifest.Store, name manifest.Name) error {
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
	err := w.s.Remove(ctx, w.name())
	if errors.Is(err, manifest.ErrBlobsKept) && errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	return absentIsFine(err)
}

func (w *worker) prune(ctx context.Context) (bool, error) {
	_, err := w.s.Prune(ctx, manifest.PruneOptions{DryRun: rand.N(4) == 0, Unfinished: rand.N(4) == 0})
	if errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

// soakFsck finds nothing wrong, whatever the others are about.
func (w *worker) fsck(ctx context.Context) (bool, error) {
	r, err := w.s.Fsck(ctx, manifest.FsckOptions{Repair: rand.N(2) == 0})
	if errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	if err == nil && len(r.Problems) > 0 {
		err = fmt.Errorf("problems: %+v", r.Problems)
	}
	return err == nil, err
}

func (w *worker) list(ctx context.Context) (bool, error) {
	if _, err := w.s.ListShared(ctx); err != nil {
		return false, err
	}
	_, err := w.s.Usage(ctx)
	return err == nil, err
}

func absentIsFine(err error) (bool, error) {
	if errors.Is(err, manifest.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
