package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/ingotml/ingot/registry"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

// soakTime returns how long TestSoak runs: INGOT_SOAK if it is a duration, else a minute in a long run and 2 seconds in
// others.
func soakTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("INGOT_SOAK")); err == nil && d > 0 {
		return d
	}
	return runtest.Pick(2*time.Second, time.Minute)
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
