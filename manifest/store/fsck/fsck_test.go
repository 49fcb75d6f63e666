package fsck_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// overwrite replaces a blob's content.
func overwrite(t *testing.T, s *store.Store, blob, text string) {
	t.Helper()
	path := s.BlobPath(digest.FromString(blob))
	os.Remove(path)
	if err := os.WriteFile(path, []byte(text), 0o444); err != nil {
		t.Fatal(err)
	}
}

func blobOf(text string) string { return string(digest.FromString(text)) }

func TestFsckFindsNothing(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "shared", "a")
	signed := storetest.PutModel(t, s, "h.io/b:2", "shared", "b")
	storetest.PutEntry(t, s, "", ocispec.MediaTypeImageManifest, storetest.Artifact(t, s, "signature", signed))
	storetest.PutBlob(t, s, "w", "not in a model")
	storetest.Leave(t, s, "create-"+storetest.SomeDigest.Encoded()+"/journal", "", 0)
	storetest.Leave(t, s, "blob-1", "being written", 0)
	var calls int
	var last int64
	r := storetest.Fsck(t, s, fsck.Options{Progress: func(done, total int64) {
		calls++
		if done < last || done > total {
			t.Errorf("%d of %d bytes after %d", done, total, last)
		}
		last = done
	}})
	storetest.WantProblems(t, r)
	if !r.OK() || r.Models != 2 || r.Blobs != 10 || r.Bytes != last || calls == 0 || r.Unfinished != 1 {
		t.Errorf("%+v after %d calls", r, calls)
	}
	if r = storetest.Fsck(t, s, fsck.Options{Repair: true}); len(r.Problems) > 0 {
		t.Errorf("repaired %v", storetest.ProblemLines(r))
	}
	storetest.WantBlobs(t, s, map[string]bool{"not in a model": true})
}

// Fsck finds all kinds of damage at once and repairs what needs no registry.
func TestFsckFindsAndRepairs(t *testing.T) {
	s := storetest.NewStore(t)
	// so that all files are older than strayAge
	store.Clock(func() time.Time { return time.Now().Add(2 * ingest.StrayAge) })(s)
	storetest.PutModel(t, s, "a", "shared", "a")
	signed := storetest.PutModel(t, s, "b", "shared", "gone")
	d := storetest.PutModel(t, s, "c", "c")
	sig := storetest.Artifact(t, s, "signature", signed)
	storetest.PutEntry(t, s, "", ocispec.MediaTypeImageManifest, sig)
	storetest.PutBlob(t, s, "w", "unused")
	invalid := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":7}`
	storetest.PutEntry(t, s, "invalid", ocispec.MediaTypeImageManifest, invalid)

	overwrite(t, s, "shared", "sharex")
	overwrite(t, s, "unused", "")
	overwrite(t, s, "signature", "signaturx")
	os.Remove(s.BlobPath(digest.FromString("gone")))
	if err := os.Chmod(s.BlobPath(digest.FromString("c")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(store.BlobsDir, "notes.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	storetest.Leave(t, s, "blob-1", "half", 2*ingest.StrayAge)
	if err := s.UpdateIndex(t.Context(), func(idx *ocispec.Index) error {
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

	found := storetest.Fsck(t, s, fsck.Options{})
	corrupt := []string{
		"corrupt " + blobOf("shared") + " breaks a:latest, b:latest",
		"corrupt " + blobOf("signature") + " breaks referrer of b:latest",
		"corrupt " + blobOf("unused"),
	}
	slices.Sort(corrupt)
	manifestBytes := "manifest " + blobOf(invalid) + " breaks invalid:latest"
	missing := "missing " + blobOf("gone") + " breaks b:latest"
	want := slices.Concat([]string{"index index.json#2 breaks c:latest", "index index.json#5 breaks c:latest",
		manifestBytes},
		corrupt,
		[]string{missing, "mode " + blobOf("c"), "stray blobs/sha256/notes.txt", "leftover ingest/blob-1"})
	storetest.WantProblems(t, found, want...)
	for _, p := range found.Problems {
		if p.Detail == "" || strings.Contains(p.Detail, "\n") || len(p.Actions) > 0 {
			t.Errorf("%+v", p)
		}
	}
	storetest.WantBlobs(t, s, map[string]bool{"shared": true, "unused": true})

	for i := range want {
		fixed := want[i] != manifestBytes && want[i] != missing && !strings.HasSuffix(want[i], "b:latest")
		if fixed {
			want[i] += " fixed"
		}
	}
	storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{Repair: true}), want...)
	quarantined := []string{digest.FromString("shared").Encoded(), digest.FromString("signature").Encoded(),
		digest.FromString("unused").Encoded(), "notes.txt"}
	slices.Sort(quarantined)
	if got := storetest.Files(t, s, store.QuarantineDir); !slices.Equal(got, quarantined) {
		t.Errorf("quarantine contains %v, want %v", got, quarantined)
	}
	if b, err := os.ReadFile(s.Path(store.QuarantineDir, digest.FromString("shared").Encoded())); string(b) != "sharex" {
		t.Errorf("quarantined: %q, %v", b, err)
	}

	// The remaining problems need a download. A blob can be quarantined a second time under another name.
	missingAll := []string{missing, "missing " + blobOf("shared") + " breaks a:latest, b:latest",
		"missing " + blobOf("signature") + " breaks referrer of b:latest"}
	slices.Sort(missingAll)
	storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{}), slices.Concat([]string{manifestBytes}, missingAll)...)
	overwrite(t, s, "shared", "again")
	storetest.Fsck(t, s, fsck.Options{Repair: true})
	if got := storetest.Files(t, s, store.QuarantineDir); !slices.Contains(got,
		digest.FromString("shared").Encoded()+".2") {
		t.Errorf("quarantine contains %v", got)
	}
	if u, err := collect.UsageOf(t.Context(), s); err != nil || u.QuarantinedBytes == 0 {
		t.Errorf("usage %+v, %v", u, err)
	}
}

// Repair downloads good copies from the registries in the names, manifests first, because they reveal which blobs are
// missing.
func TestFsckFetches(t *testing.T) {
	s, origin := storetest.NewStore(t), storetest.NewStore(t)
	for _, to := range []*store.Store{s, origin} {
		storetest.PutModel(t, to, "h.io/a", "one", "two")
		storetest.PutModel(t, to, "local", "own")
	}
	e, err := s.Resolve(t.Context(), storetest.MustName(t, "h.io/a"))
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, s, string(e.ManifestBytes), "{}")
	overwrite(t, s, "one", "0ne")
	os.Remove(s.BlobPath(digest.FromString("two")))
	os.Remove(s.BlobPath(digest.FromString("own")))
	var fetched []string
	broken := true
	fetch := func(ctx context.Context, name manifest.Name, desc ocispec.Descriptor) error {
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
	r := storetest.Fsck(t, s, fsck.Options{Repair: true, Fetch: fetch})
	// While the manifest is missing, its blobs are unreferenced. The corrupt one is quarantined and not downloaded.
	storetest.WantProblems(t, r, "corrupt "+string(e.Digest)+" breaks h.io/a:latest", "corrupt "+blobOf("one")+" fixed",
		"missing "+blobOf("own")+" breaks local:latest")
	i := slices.IndexFunc(r.Problems, func(p fsck.Problem) bool { return p.Digest == e.Digest })
	unreachable := func(action string) bool { return strings.Contains(action, "no route to host") }
	if !slices.ContainsFunc(r.Problems[i].Actions, unreachable) {
		t.Errorf("actions %q", r.Problems[i].Actions)
	}
	broken, fetched = false, nil
	r = storetest.Fsck(t, s, fsck.Options{Repair: true, Fetch: fetch})
	missing := []string{"missing " + string(e.Digest), "missing " + blobOf("one"), "missing " + blobOf("two")}
	for i := range missing {
		missing[i] += " breaks h.io/a:latest fixed"
	}
	missing = append(missing, "missing "+blobOf("own")+" breaks local:latest")
	slices.Sort(missing)
	storetest.WantProblems(t, r, missing...)
	if len(fetched) != 3 || fetched[0] != "h.io/a:latest "+string(e.Digest) {
		t.Errorf("fetched %q", fetched)
	}
	storetest.Remove(t, s, "local")
	storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{}))
	storetest.CheckStore(t, s)
}

func TestFsckLocks(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "a")
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{})) // shares the lock
	var busy *lock.BusyError
	if _, err := fsck.Run(t.Context(), s, fsck.Options{Repair: true}); !errors.As(err, &busy) || len(busy.Holders) != 1 {
		t.Errorf("repair while another writes: %v", err)
	}
	release()
	storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{Repair: true}))
	storetest.CheckTidy(t, s)
}

func TestFsckCancelled(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", strings.Repeat("x", 5<<20))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := fsck.Run(ctx, s, fsck.Options{Repair: true, Progress: func(int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	storetest.CheckTidy(t, s)
}

// A manifest with several names is read once.
func BenchmarkListShared(b *testing.B) {
	s, err := store.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	idx := ocispec.Index{}
	for m := range 1000 {
		img := manifest.Image{Config: manifest.Config{ModelType: "llama", Name: fmt.Sprint(m)}}
		for i := range 300 {
			img.Layers = append(img.Layers, manifest.Layer{Kind: manifest.KindTensor,
				Name:   fmt.Sprintf("model.layers.%d.weight", i),
				Digest: digest.FromString(fmt.Sprint(m/2, i)), Size: 1 << 20})
		}
		doc, config, err := manifest.EncodeModelPack(img)
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
		index.Describe(&d, manifest.Name{Path: fmt.Sprintf("m%d", m), Tag: manifest.DefaultTag}, 7, "llama", storetest.Noon)
		idx.Manifests = append(idx.Manifests, d)
	}
	if err := s.UpdateIndex(b.Context(), func(i *ocispec.Index) error { *i = idx; return nil }); err != nil {
		b.Fatal(err)
	}
	for name, list := range map[string]func(context.Context) ([]store.Summary, error){
		"index":  s.List,
		"shared": func(ctx context.Context) ([]store.Summary, error) { return storetest.ListShared(ctx, s) },
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
