package exchange

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func init() {
	// Imports and exports until killed.
	storetest.Jobs["exchange"] = func(ctx context.Context, s *store.Store, theirs string) error {
		o, err := Open(theirs)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		for i := 0; ; i++ {
			from := ollama.Name{
				Host: ollama.DefaultHost, Namespace: "library", Model: fmt.Sprintf("m%d", i%3), Tag: "latest",
			}
			name := manifest.Name{Path: fmt.Sprintf("m%d", i%3), Tag: manifest.DefaultTag}
			if _, err := o.Import(ctx, from, s, name, Options{Format: manifest.FormatModelPack}); err != nil {
				return err
			}
			e, err := s.Resolve(ctx, name)
			if err != nil {
				return err
			}
			to := ollama.Name{Host: ollama.DefaultHost, Namespace: "out", Model: fmt.Sprintf("m%d", i%5), Tag: "latest"}
			if _, err := o.Export(ctx, s, e, to, Options{}); err != nil {
				return err
			}
			if err := collect.Remove(ctx, s, name); err != nil {
				return err
			}
		}
	}
}

// A process is killed at random moments while it copies. Named models stay complete in both stores, and incomplete
// files have temporary names.
func TestKilledExchange(t *testing.T) {
	o := newOllama(t)
	for i := range 3 {
		o.put(fmt.Sprintf("manifests/registry.ollama.ai/library/m%d/latest", i),
			o.model(strings.Repeat(fmt.Sprint("tensor", i), 100_000)))
	}
	s := storetest.NewStore(t)
	for range runtest.Pick(10, 100) {
		cmd := storetest.Child(t, "exchange:"+o.root, s.Root())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = new(strings.Builder)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("child: %v", cmd.Stderr)
		}
		time.Sleep(rand.N(60 * time.Millisecond))
		cmd.Process.Kill()
		cmd.Wait()
		if text := cmd.Stderr.(*strings.Builder).String(); text != "" {
			t.Errorf("child: %s", text)
		}
		storetest.CheckStore(t, s)
		checkOllama(t, o)
	}
	// The leftovers do not interfere with later imports.
	for i := range 3 {
		if _, err := o.Import(t.Context(), ollamaName(t, fmt.Sprintf("m%d", i)), s, storetest.MustName(t, "last"),
			Options{}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range storetest.Names(t, s) {
		storetest.Remove(t, s, name)
	}
	begun := slices.DeleteFunc(storetest.Files(t, s, "ingest"),
		func(name string) bool { return !strings.HasPrefix(name, store.PartialPrefix) })
	if got := slices.Concat(storetest.Files(t, s, "blobs/sha256"), storetest.Files(t, s, "holders"), begun); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

// checkOllama verifies all manifests and blobs of an Ollama store.
func checkOllama(t *testing.T, o ollamaFolder) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(o.root, "manifests"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		blobs, err := manifest.Blobs(b)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, d := range blobs {
			if info, err := os.Stat(o.blobPath(d.Digest)); err != nil || info.Size() != d.Size {
				t.Errorf("%s: blob %s: %v, %v", path, d.Digest, info, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Join(o.root, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "sha256-ingot-") {
			continue // a temporary file, by its name
		}
		b, err := os.ReadFile(filepath.Join(o.root, "blobs", e.Name()))
		if err != nil || "sha256-"+digest.FromBytes(b).Encoded() != e.Name() {
			t.Errorf("blob %s has other content: %v", e.Name(), err)
		}
	}
}

// If root exports to the store of the Ollama service, new files belong to the service's user, and the store's own files
// keep their owner.
func TestExportForAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	o, s := newOllama(t), storetest.NewStore(t)
	if err := os.MkdirAll(o.root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(o.root, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	storetest.PutModel(t, s, "m", "one", "two")
	e, err := s.Resolve(t.Context(), storetest.MustName(t, "m"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := o.Export(t.Context(), s, e, ollamaName(t, "m"), Options{})
	if err != nil || x.Linked != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	owner, err := os.Stat(o.root)
	if err != nil {
		t.Fatal(err)
	}
	filepath.WalkDir(o.root, func(path string, e fs.DirEntry, err error) error {
		if info, err := e.Info(); err != nil || !disk.SameOwner(info, owner) {
			t.Errorf("%s belongs to another user: %v", path, err)
		}
		return err
	})
	storetest.CheckTidy(t, s)
}
