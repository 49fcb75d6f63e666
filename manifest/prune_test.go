package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestPruneDryRun(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "old", "kept")
	signed := putModel(t, s, "b", "b")
	sig := artifact(t, s, "signature", signed)
	putEntry(t, s, "", ocispec.MediaTypeImageManifest, sig)
	putModel(t, s, "a", "new", "kept")
	leave(t, s, "blob-123", "half", 0)

	dry := prune(t, s, PruneOptions{DryRun: true})
	var what []string
	for _, item := range dry.Items {
		what = append(what, string(item.Kind)+" "+item.Name)
	}
	if len(what) != 4 || !slices.Contains(what, "blob "+string(digest.FromString("old"))) ||
		what[3] != "file ingest/blob-123" {
		t.Errorf("would prune %q", what) // the old blob, manifest and config, and the file
	}
	wantBlobs(t, s, map[string]bool{"old": true, "signature": true})

	before, after := diskBytes(t, s), prune(t, s, PruneOptions{})
	if diff := cmp.Diff(dry, after); diff != "" {
		t.Errorf("the dry run differs (-dry +run):\n%s", diff)
	}
	if freed := before - diskBytes(t, s); freed != after.Bytes {
		t.Errorf("%d bytes freed, the report says %d", freed, after.Bytes)
	}
	wantBlobs(t, s, map[string]bool{"old": false, "new": true, "kept": true, "signature": true, sig: true})
	checkTidy(t, s)
	if again := prune(t, s, PruneOptions{}); len(again.Items) > 0 || again.Bytes > 0 {
		t.Errorf("a second run removed %+v", again)
	}

	// Referrers of a replaced model are removed too.
	putModel(t, s, "b", "other")
	gone := prune(t, s, PruneOptions{})
	if !slices.ContainsFunc(gone.Items,
		func(p Pruned) bool { return p.Kind == PrunedReferrer && p.Name == string(digest.FromString(sig)) }) {
		t.Errorf("pruned %+v", gone)
	}
	wantBlobs(t, s, map[string]bool{"b": false, "signature": false, sig: false})
	checkTidy(t, s)
}

// diskBytes returns the total size of blobs and files in ingest/.
func diskBytes(t *testing.T, s *Store) int64 {
	t.Helper()
	var sum int64
	for _, dir := range []string{blobsDir, ingestDir} {
		err := filepath.WalkDir(s.path(dir), func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				info, err := e.Info()
				if err != nil {
					return err
				}
				sum += info.Size()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sum
}

// The state of interrupted runs is kept for IngestAge, or until Prune is called with Unfinished.
func TestPruneUnfinished(t *testing.T) {
	s := newStore(t)
	putBlob(t, s, "w", "pulled already")
	pulled := artifact(t, s, "pulled already", "")
	hex := digest.FromString("half").Encoded()
	const day = 24 * time.Hour
	for name, age := range map[string]time.Duration{
		"pull-" + digest.FromString(pulled).Encoded(): day,
		hex + ".part":                day,
		hex + ".ranges":              20 * day,
		"push-" + hex + "/state":     day,
		"create-" + hex + "/journal": day,
	} {
		text := name
		if strings.HasPrefix(name, "pull-") {
			text = pulled
		}
		leave(t, s, name, text, age)
	}
	old := digest.FromString("old").Encoded()
	for _, name := range []string{old + ".part", old + ".lock", "push-" + old + "/state", "pull-" + old,
		"create-" + old + "/journal"} {
		leave(t, s, name, "{}", IngestAge+time.Minute)
	}
	leave(t, s, someDigest.Encoded()+".lock", "", 0)         // lock file without a part
	leave(t, s, "push-"+someDigest.Encoded()+"/lock", "", 0) // session without state
	leave(t, s, "index.json-1", "", 0)
	leave(t, s, "index.json-2", "", 2*time.Hour)
	leave(t, s, "README", "not ours", 50*day)

	prune(t, s, PruneOptions{})
	want := []string{hex + ".part", hex + ".ranges", "README", "create-" + hex, "index.json-1",
		"pull-" + digest.FromString(pulled).Encoded(), "push-" + hex}
	slices.Sort(want)
	if got := files(t, s, ingestDir); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	wantBlobs(t, s, map[string]bool{"pulled already": true})

	prune(t, s, PruneOptions{Unfinished: true})
	if got := files(t, s, ingestDir); !slices.Equal(got, []string{"README", "index.json-1"}) {
		t.Errorf("left %v", got)
	}
	wantBlobs(t, s, map[string]bool{"pulled already": false})
}

func TestPruneNamesTheHolder(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "old")
	putModel(t, s, "a", "new")
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var busy *BusyError
	if _, err := s.Prune(t.Context(), PruneOptions{}); !errors.As(err, &busy) || len(busy.Holders) != 1 ||
		busy.Holders[0].PID != os.Getpid() {
		t.Errorf("error %v", err)
	}
	wantBlobs(t, s, map[string]bool{"old": true})
}

// Remove removes all names or none.
func TestRemoveSeveral(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"a", "b", "c"} {
		putModel(t, s, name, "shared", name)
	}
	err := s.Remove(t.Context(), mustName(t, "a"), mustName(t, "nosuch"), mustName(t, "b"))
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("error %v", err)
	}
	if got := names(t, s); len(got) != 3 {
		t.Errorf("names %v", got)
	}
	if err := s.Remove(t.Context(), mustName(t, "a"), mustName(t, "c"), mustName(t, "a")); err != nil {
		t.Error(err)
	}
	if got := names(t, s); !slices.Equal(got, []string{"b:latest"}) {
		t.Errorf("names %v", got)
	}
	wantBlobs(t, s, map[string]bool{"shared": true, "a": false, "b": true, "c": false})
}

func TestUsage(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "a", "shared by two", "a")
	putModel(t, s, "b", "shared by two", "longer")
	if err := s.Tag(t.Context(), mustName(t, "b"), mustName(t, "c")); err != nil {
		t.Fatal(err)
	}
	total := diskBytes(t, s)
	list, err := s.ListShared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, b := list[0], list[1]
	if want := int64(len("shared by two")); a.Shared != want || b.Shared != b.Size || list[2].Shared != b.Size {
		t.Errorf("shared %d, want %d; %d of %d; %d", a.Shared, want, b.Shared, b.Size, list[2].Shared)
	}
	u, err := s.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Usage{Models: 3, Blobs: 7, Bytes: total, SharedBytes: b.Size, SavedBytes: a.Size + 2*b.Size - total}
	if diff := cmp.Diff(want, u); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}

	putModel(t, s, "a", "new")
	leave(t, s, "push-"+someDigest.Encoded()+"/state", "12345", time.Hour)
	if u, err = s.Usage(t.Context()); err != nil || u.ReclaimableBlobs != 3 || u.Unfinished != 1 ||
		u.UnfinishedBytes != 5 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if freed := prune(t, s, PruneOptions{}).Bytes; freed != u.ReclaimableBytes {
		t.Errorf("%d bytes freed, Usage reported %d", freed, u.ReclaimableBytes)
	}

	// A damaged model is still listed.
	os.Remove(s.BlobPath(b.Digest))
	if u, err = s.Usage(t.Context()); err != nil || u.Models != 3 || !strings.Contains(u.Damage, "b:latest") {
		t.Errorf("usage %+v, %v", u, err)
	}
	if list, err = s.ListShared(t.Context()); err != nil || len(list) != 3 || list[0].Shared != 0 {
		t.Errorf("list %+v, %v", list, err)
	}
}

// Blobs left out by a partial pull use no space and are not shared. The size of another tool's entry comes from its
// manifest.
func TestSharedOfPartialAndForeign(t *testing.T) {
	s := newStore(t)
	putModel(t, s, "whole", "weights", "config")
	e, err := s.Resolve(t.Context(), mustName(t, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(s.BlobPath(digest.FromString("weights")))
	if _, err := s.PutRaw(t.Context(), mustName(t, "partial"), ocispec.MediaTypeImageManifest, e.ManifestBytes,
		PutOptions{Partial: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), mustName(t, "whole")); err != nil {
		t.Fatal(err)
	}
	putEntry(t, s, "foreign", ocispec.MediaTypeImageManifest, artifact(t, s, "config", ""))
	list, err := s.ListShared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := int64(len("config"))
	if p := list[1]; p.Partial != 1 || p.Shared != want {
		t.Errorf("%+v, want 1 blob absent and %d bytes shared", p, want)
	}
	if f := list[0]; f.Shared != want || f.Size <= want {
		t.Errorf("%+v, want a size and %d bytes shared", f, want)
	}
	if r, err := s.Fsck(t.Context(), FsckOptions{}); err != nil || len(r.Problems) > 0 {
		t.Errorf("fsck: %+v, %v", r.Problems, err)
	}
}
