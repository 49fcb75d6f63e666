package manifest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
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

// TestSoak lets processes create, copy, tag, read, remove, check and prune at random in one store. None of them fails, none of
// what has a name is lost, and afterwards nothing is wrong and nothing is left over.
func TestSoak(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	var children []*exec.Cmd
	for i := range soakProcesses {
		c := manifest.Child(t, fmt.Sprintf("soak:%s,%d", soakTime(), i), root)
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
		if done[o.name] == 0 {
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

// soakOps are what a process chooses from. One that gives false found nothing to do, or the store busy.
var soakOps = []struct {
	name   string
	weight int
	do     func(context.Context, *manifest.Store) (bool, error)
}{
	{"create", 6, soakCreate},
	{"resume", 2, soakResume},
	{"tag", 5, soakTag},
	{"copy", 3, soakCopy},
	{"read", 8, soakRead},
	{"remove", 6, soakRemove},
	{"prune", 3, soakPrune},
	{"fsck", 1, soakFsck},
	{"list", 2, soakList},
}

// soak does something at random until its time is over, and prints how often it did what.
func soak(ctx context.Context, s *manifest.Store, arg string) error {
	limit, _, _ := strings.Cut(arg, ",")
	d, err := time.ParseDuration(limit)
	if err != nil {
		return err
	}
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
		ok, err := o.do(ctx, s)
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

func soakCreate(ctx context.Context, s *manifest.Store) (bool, error) {
	release, err := s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	var img manifest.Image
	for i := range 1 + rand.N(6) {
		w, err := s.NewBlob(ctx)
		if err != nil {
			return false, err
		}
		defer w.Abort()
		if _, err := io.WriteString(w, soakText()); err != nil {
			return false, err
		}
		d, n, err := w.Commit()
		if err != nil {
			return false, err
		}
		img.Layers = append(img.Layers, soakLayer(i, d, n))
	}
	_, err = s.Put(ctx, soakName(), img)
	return true, err
}

func soakLayer(i int, d digest.Digest, n int64) manifest.Layer {
	return manifest.Layer{Kind: manifest.KindTensor, Name: fmt.Sprint("t", i), Digest: d, Size: n}
}

// soakResume creates as commands do: in a folder that is kept when the run ends early, as every second one does here.
func soakResume(ctx context.Context, s *manifest.Store) (bool, error) {
	release, err := s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	in, err := s.OpenIngest(ctx, digest.FromString(fmt.Sprint("run", rand.N(3))))
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
	if _, err := s.Put(ctx, soakName(), img); err != nil {
		return false, err
	}
	in.Remove()
	return true, nil
}

func soakTag(ctx context.Context, s *manifest.Store) (bool, error) {
	return absentIsFine(s.Tag(ctx, soakName(), soakName()))
}

func soakCopy(ctx context.Context, s *manifest.Store) (bool, error) {
	release, err := s.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	raw, err := s.ResolveRaw(ctx, soakName())
	if err != nil {
		return absentIsFine(err)
	}
	_, err = s.PutRaw(ctx, soakName(), raw.Descriptor.MediaType, raw.Bytes, manifest.PutOptions{})
	return err == nil, err
}

// soakRead reads a model as one that runs it does, without a lock. It may be removed meanwhile; then another name, or none, is there.
func soakRead(ctx context.Context, s *manifest.Store) (bool, error) {
	name := soakName()
	for range 20 {
		before, err := s.ResolveRaw(ctx, name)
		if err != nil {
			return absentIsFine(err)
		}
		err = readAll(ctx, s, name)
		if err == nil {
			return true, nil
		}
		if after, again := s.ResolveRaw(ctx, name); again == nil && after.Descriptor.Digest == before.Descriptor.Digest && after.Descriptor.Annotations["org.ingotml.modified"] == before.Descriptor.Annotations["org.ingotml.modified"] {
			return false, err
		}
	}
	return false, nil
}

func readAll(ctx context.Context, s *manifest.Store, name manifest.Name) error {
	e, err := s.Resolve(ctx, name)
	if err != nil {
		return err
	}
	for _, l := range e.Image.Layers {
		if _, err := s.ReadBlob(l.Digest, l.Size); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func soakRemove(ctx context.Context, s *manifest.Store) (bool, error) {
	err := s.Remove(ctx, soakName())
	if errors.Is(err, manifest.ErrBlobsKept) && errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	return absentIsFine(err)
}

func soakPrune(ctx context.Context, s *manifest.Store) (bool, error) {
	_, err := s.Prune(ctx, manifest.PruneOptions{DryRun: rand.N(4) == 0, Unfinished: rand.N(4) == 0})
	if errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

// soakFsck finds nothing wrong, whatever the others are about.
func soakFsck(ctx context.Context, s *manifest.Store) (bool, error) {
	r, err := s.Fsck(ctx, manifest.FsckOptions{Repair: rand.N(2) == 0})
	if errors.Is(err, manifest.ErrBusy) {
		return false, nil
	}
	if err == nil && len(r.Problems) > 0 {
		err = fmt.Errorf("problems: %+v", r.Problems)
	}
	return err == nil, err
}

func soakList(ctx context.Context, s *manifest.Store) (bool, error) {
	if _, err := s.ListShared(ctx); err != nil {
		return false, err
	}
	_, err := s.Usage(ctx)
	return err == nil, err
}

func absentIsFine(err error) (bool, error) {
	if errors.Is(err, manifest.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
