package manifest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// overwrite replaces a blob's content.
func overwrite(t *testing.T, s *Store, blob, text string) {
	t.Helper()
	path := s.BlobPath(digest.FromString(blob))
	os.Remove(path)
	if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
		t.Fatal(err)
	}
}

func blobOf(text string) string { return string(digest.FromString(text)) }

func TestFsckFindsNothing(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "shared", "a")
	signed := putModel(t, s, "h.io/b:2", "shared", "b")
	putEntry(t, s, "", ocispec.MediaTypeImageManifest, artifact(t, s, "signature", signed))
	putBlob(t, s, "w", "not in a model")
	leave(t, s, "create-"+someDigest.Encoded()+"/journal", "", 0)
	leave(t, s, "blob-1", "being written", 0)
	var calls int
	var last int64
	r := fsck(t, s, FsckOptions{Progress: func(done, total int64) {
		calls++
		if done < last || done > total {
			t.Errorf("%d of %d bytes after %d", done, total, last)
		}
		last = done
	}})
	wantProblems(t, r)
	if !r.OK() || r.Models != 2 || r.Blobs != 10 || r.Bytes != last || calls == 0 || r.Unfinished != 1 {
		t.Errorf("%+v after %d calls", r, calls)
	}
	if r = fsck(t, s, FsckOptions{Repair: true}); len(r.Problems) > 0 {
		t.Errorf("repaired %v", problemLines(r))
	}
	wantBlobs(t, s, map[string]bool{"not in a model": true})
}

// Fsck finds all kinds of damage at once and repairs what needs no registry.
func TestFsckFindsAndRepairs(t *testing.T) {
	s := newStore(t)
	Clock(func() time.Time { return time.Now().Add(2 * strayAge) })(s) // so that all files are older than strayAge
	putModel(t, s, "a", "shared", "a")
	signed := putModel(t, s, "b", "shared", "gone")
	d := putModel(t, s, "c", "c")
	sig := artifact(t, s, "signature", signed)
	putEntry(t, s, "", ocispec.MediaTypeImageManifest, sig)
	putBlob(t, s, "w", "unused")
	invalid := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":7}`
	putEntry(t, s, "invalid", ocispec.MediaTypeImageManifest, invalid)

	overwrite(t, s, "shared", "sharex")
	overwrite(t, s, "unused", "")
	overwrite(t, s, "signature", "signaturx")
	os.Remove(s.BlobPath(digest.FromString("gone")))
	if err := os.Chmod(s.BlobPath(digest.FromString("c")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path(blobsDir, "notes.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	leave(t, s, "blob-1", "half", 2*strayAge)
	if err := s.updateIndex(t.Context(), func(idx *ocispec.Index) error {
		for i := range idx.Manifests {
			if idx.Manifests[i].Digest == d {
				idx.Manifests[i].Size++
				second := idx.Manifests[i]
				second.Size--
				idx.Manifests = append(idx.Manifests, second)
				break
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	found := fsck(t, s, FsckOptions{})
	corrupt := []string{
		"corrupt " + blobOf("shared") + " breaks a:latest, b:latest",
		"corrupt " + blobOf("signature") + " breaks referrer of b:latest",
		"corrupt " + blobOf("unused"),
	}
	slices.Sort(corrupt)
	manifest := "manifest " + blobOf(invalid) + " breaks invalid:latest"
	missing := "missing " + blobOf("gone") + " breaks b:latest"
	want := slices.Concat([]string{"index index.json#2 breaks c:latest", "index index.json#5 breaks c:latest", manifest},
		corrupt,
		[]string{missing, "mode " + blobOf("c"), "stray blobs/sha256/notes.txt", "leftover ingest/blob-1"})
	wantProblems(t, found, want...)
	for _, p := range found.Problems {
		if p.Detail == "" || strings.Contains(p.Detail, "\n") || len(p.Actions) > 0 {
			t.Errorf("%+v", p)
		}
	}
	wantBlobs(t, s, map[string]bool{"shared": true, "unused": true})

	for i := range want {
		fixed := want[i] != manifest && want[i] != missing && !strings.HasSuffix(want[i], "b:latest")
		if fixed {
			want[i] += " fixed"
		}
	}
	wantProblems(t, fsck(t, s, FsckOptions{Repair: true}), want...)
	quarantined := []string{digest.FromString("shared").Encoded(), digest.FromString("signature").Encoded(),
		digest.FromString("unused").Encoded(), "notes.txt"}
	slices.Sort(quarantined)
	if got := files(t, s, quarantineDir); !slices.Equal(got, quarantined) {
		t.Errorf("quarantine contains %v, want %v", got, quarantined)
	}
	if b, err := os.ReadFile(s.path(quarantineDir, digest.FromString("shared").Encoded())); string(b) != "sharex" {
		t.Errorf("quarantined: %q, %v", b, err)
	}

	// The remaining problems need a download. A blob can be quarantined a second time under another name.
	missingAll := []string{missing, "missing " + blobOf("shared") + " breaks a:latest, b:latest",
		"missing " + blobOf("signature") + " breaks referrer of b:latest"}
	slices.Sort(missingAll)
	wantProblems(t, fsck(t, s, FsckOptions{}), slices.Concat([]string{manifest}, missingAll)...)
	overwrite(t, s, "shared", "again")
	fsck(t, s, FsckOptions{Repair: true})
	if got := files(t, s, quarantineDir); !slices.Contains(got, digest.FromString("shared").Encoded()+".2") {
		t.Errorf("quarantine contains %v", got)
	}
	if u, err := s.Usage(t.Context()); err != nil || u.QuarantinedBytes == 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
}

// Repair downloads good copies from the registries in the names, manifests first, because they reveal which blobs are
// missing.
func TestFsckFetches(t *testing.T) {
	s, origin := newStore(t), newStore(t)
	for _, to := range []*Store{s, origin} {
		putModel(t, to, "h.io/a", "one", "two")
		putModel(t, to, "local", "own")
	}
	e, err := s.Resolve(t.Context(), mustName(t, "h.io/a"))
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, s, string(e.ManifestBytes), "{}")
	overwrite(t, s, "one", "0ne")
	os.Remove(s.BlobPath(digest.FromString("two")))
	os.Remove(s.BlobPath(digest.FromString("own")))
	var fetched []string
	broken := true
	fetch := func(ctx context.Context, name Name, desc ocispec.Descriptor) error {
		fetched = append(fetched, name.String()+" "+string(desc.Digest))
		if broken {
			return errors.New("no route to host")
		}
		b, err := origin.ReadBlob(desc.Digest, desc.Size)
		if err == nil {
			_, _, err = s.PutBytes(ctx, b)
		}
		return err
	}
	r := fsck(t, s, FsckOptions{Repair: true, Fetch: fetch})
	// While the manifest is missing, its blobs are unreferenced. The corrupt one is quarantined and not downloaded.
	wantProblems(t, r, "corrupt "+string(e.Digest)+" breaks h.io/a:latest", "corrupt "+blobOf("one")+" fixed",
		"missing "+blobOf("own")+" breaks local:latest")
	i := slices.IndexFunc(r.Problems, func(p Problem) bool { return p.Digest == e.Digest })
	unreachable := func(action string) bool { return strings.Contains(action, "no route to host") }
	if !slices.ContainsFunc(r.Problems[i].Actions, unreachable) {
		t.Errorf("actions %q", r.Problems[i].Actions)
	}
	broken, fetched = false, nil
	r = fsck(t, s, FsckOptions{Repair: true, Fetch: fetch})
	missing := []string{"missing " + string(e.Digest), "missing " + blobOf("one"), "missing " + blobOf("two")}
	for i := range missing {
		missing[i] += " breaks h.io/a:latest fixed"
	}
	missing = append(missing, "missing "+blobOf("own")+" breaks local:latest")
	slices.Sort(missing)
	wantProblems(t, r, missing...)
	if len(fetched) != 3 || fetched[0] != "h.io/a:latest "+string(e.Digest) {
		t.Errorf("fetched %q", fetched)
	}
	remove(t, s, "local")
	wantProblems(t, fsck(t, s, FsckOptions{}))
	checkStore(t, s)
}

func TestFsckLocks(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "a")
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantProblems(t, fsck(t, s, FsckOptions{})) // shares the lock
	var busy *BusyError
	if _, err := s.Fsck(t.Context(), FsckOptions{Repair: true}); !errors.As(err, &busy) || len(busy.Holders) != 1 {
		t.Errorf("repair while another writes: %v", err)
	}
	release()
	wantProblems(t, fsck(t, s, FsckOptions{Repair: true}))
	checkTidy(t, s)
}

func TestFsckDamagedIndex(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "a")
	if err := os.WriteFile(s.path("index.json"), []byte(`{"schemaVersion":2,`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, repair := range []bool{false, true} {
		r := fsck(t, s, FsckOptions{Repair: repair})
		wantProblems(t, r, "index index.json")
		if r.Blobs != 3 {
			t.Errorf("%d blobs hashed", r.Blobs)
		}
	}
	wantBlobs(t, s, map[string]bool{"a": true})
}

func TestFsckCancelled(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", strings.Repeat("x", 5<<20))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Fsck(ctx, FsckOptions{Repair: true, Progress: func(int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	checkTidy(t, s)
}

// A manifest with several names is read once.
func BenchmarkListShared(b *testing.B) {
	s, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	idx := ocispec.Index{}
	for m := range 1000 {
		img := Image{Config: Config{ModelType: "llama", Name: fmt.Sprint(m)}}
		for i := range 300 {
			img.Layers = append(img.Layers, Layer{Kind: KindTensor, Name: fmt.Sprintf("model.layers.%d.weight", i),
				Digest: digest.FromString(fmt.Sprint(m/2, i)), Size: 1 << 20})
		}
		doc, config, err := EncodeModelPack(img)
		if err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(s.BlobPath(digest.FromBytes(config)), config, 0o444); err != nil {
			b.Fatal(err)
		}
		d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(doc),
			Size: int64(len(doc))}
		if err := os.WriteFile(s.BlobPath(d.Digest), doc, 0o444); err != nil {
			b.Fatal(err)
		}
		describe(&d, Name{Path: fmt.Sprintf("m%d", m), Tag: DefaultTag}, 7, "llama", noon)
		idx.Manifests = append(idx.Manifests, d)
	}
	if err := s.updateIndex(b.Context(), func(i *ocispec.Index) error { *i = idx; return nil }); err != nil {
		b.Fatal(err)
	}
	for name, list := range map[string]func(context.Context) ([]Summary, error){
		"index":  s.List,
		"shared": func(ctx context.Context) ([]Summary, error) { return s.ListShared(ctx) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got, err := list(b.Context()); err != nil || len(got) != 1000 {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}
