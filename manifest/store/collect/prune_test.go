package collect_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestPruneDryRun(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "old", "kept")
	signed := storetest.PutModel(t, s, "b", "b")
	sig := storetest.Artifact(t, s, "signature", signed)
	storetest.PutEntry(t, s, "", ocispec.MediaTypeImageManifest, sig)
	storetest.PutModel(t, s, "a", "new", "kept")
	storetest.Leave(t, s, "blob-123", "half", 0)

	dry := storetest.Prune(t, s, collect.PruneOptions{DryRun: true})
	var what []string
	for _, item := range dry.Items {
		what = append(what, string(item.Kind)+" "+item.Name)
	}
	if len(what) != 4 || !slices.Contains(what, "blob "+string(digest.FromString("old"))) ||
		what[3] != "file ingest/blob-123" {
		t.Errorf("would prune %q", what) // the old blob, manifest and config, and the file
	}
	storetest.WantBlobs(t, s, map[string]bool{"old": true, "signature": true})

	before, after := diskBytes(t, s), storetest.Prune(t, s, collect.PruneOptions{})
	if diff := cmp.Diff(dry, after); diff != "" {
		t.Errorf("the dry run differs (-dry +run):\n%s", diff)
	}
	if freed := before - diskBytes(t, s); freed != after.Bytes {
		t.Errorf("%d bytes freed, the report says %d", freed, after.Bytes)
	}
	storetest.WantBlobs(t, s, map[string]bool{"old": false, "new": true, "kept": true, "signature": true, sig: true})
	storetest.CheckTidy(t, s)
	if again := storetest.Prune(t, s, collect.PruneOptions{}); len(again.Items) > 0 || again.Bytes > 0 {
		t.Errorf("a second run removed %+v", again)
	}

	// Referrers of a replaced model are removed too.
	storetest.PutModel(t, s, "b", "other")
	gone := storetest.Prune(t, s, collect.PruneOptions{})
	if !slices.ContainsFunc(gone.Items,
		func(p collect.Pruned) bool {
			return p.Kind == collect.PrunedReferrer && p.Name == string(digest.FromString(sig))
		}) {
		t.Errorf("pruned %+v", gone)
	}
	storetest.WantBlobs(t, s, map[string]bool{"b": false, "signature": false, sig: false})
	storetest.CheckTidy(t, s)
}

// diskBytes returns the total size of blobs and files in ingest/.
func diskBytes(t *testing.T, s *store.Store) int64 {
	t.Helper()
	var sum int64
	for _, dir := range []string{store.BlobsDir, store.IngestDir} {
		err := filepath.WalkDir(s.Path(dir), func(path string, e os.DirEntry, err error) error {
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

// The state of interrupted runs is kept for [ingest.Age], or until Prune is called with Unfinished.
func TestPruneUnfinished(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutBlob(t, s, "w", "pulled already")
	pulled := storetest.Artifact(t, s, "pulled already", "")
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
		storetest.Leave(t, s, name, text, age)
	}
	old := digest.FromString("old").Encoded()
	for _, name := range []string{old + ".part", old + ".lock", "push-" + old + "/state", "pull-" + old,
		"create-" + old + "/journal"} {
		storetest.Leave(t, s, name, "{}", ingest.Age+time.Minute)
	}
	storetest.Leave(t, s, storetest.SomeDigest.Encoded()+".lock", "", 0)         // lock file without a part
	storetest.Leave(t, s, "push-"+storetest.SomeDigest.Encoded()+"/lock", "", 0) // session without state
	storetest.Leave(t, s, "index.json-1", "", 0)
	storetest.Leave(t, s, "index.json-2", "", 2*time.Hour)
	storetest.Leave(t, s, "README", "not ours", 50*day)

	storetest.Prune(t, s, collect.PruneOptions{})
	want := []string{hex + ".part", hex + ".ranges", "README", "create-" + hex, "index.json-1",
		"pull-" + digest.FromString(pulled).Encoded(), "push-" + hex}
	slices.Sort(want)
	if got := storetest.Files(t, s, store.IngestDir); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	storetest.WantBlobs(t, s, map[string]bool{"pulled already": true})

	storetest.Prune(t, s, collect.PruneOptions{Unfinished: true})
	if got := storetest.Files(t, s, store.IngestDir); !slices.Equal(got, []string{"README", "index.json-1"}) {
		t.Errorf("left %v", got)
	}
	storetest.WantBlobs(t, s, map[string]bool{"pulled already": false})
}

func TestPruneNamesTheHolder(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "old")
	storetest.PutModel(t, s, "a", "new")
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	var busy *lock.BusyError
	if _, err := collect.Prune(t.Context(), s, collect.PruneOptions{}); !errors.As(err, &busy) || len(busy.Holders) != 1 ||
		busy.Holders[0].PID != os.Getpid() {
		t.Errorf("error %v", err)
	}
	storetest.WantBlobs(t, s, map[string]bool{"old": true})
}

// Remove removes all names or none.
func TestRemoveSeveral(t *testing.T) {
	s := storetest.NewStore(t)
	for _, name := range []string{"a", "b", "c"} {
		storetest.PutModel(t, s, name, "shared", name)
	}
	err := collect.Remove(t.Context(), s, storetest.MustName(t, "a"), storetest.MustName(t, "nosuch"),
		storetest.MustName(t, "b"))
	if !errors.Is(err, manifest.ErrNotFound) || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("error %v", err)
	}
	if got := storetest.Names(t, s); len(got) != 3 {
		t.Errorf("names %v", got)
	}
	if err := collect.Remove(t.Context(), s, storetest.MustName(t, "a"), storetest.MustName(t, "c"),
		storetest.MustName(t, "a")); err != nil {
		t.Error(err)
	}
	if got := storetest.Names(t, s); !slices.Equal(got, []string{"b:latest"}) {
		t.Errorf("names %v", got)
	}
	storetest.WantBlobs(t, s, map[string]bool{"shared": true, "a": false, "b": true, "c": false})
}

func TestUsage(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "shared by two", "a")
	storetest.PutModel(t, s, "b", "shared by two", "longer")
	if err := s.Tag(t.Context(), storetest.MustName(t, "b"), storetest.MustName(t, "c")); err != nil {
		t.Fatal(err)
	}
	total := diskBytes(t, s)
	list, err := storetest.ListShared(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	a, b := list[0], list[1]
	if want := int64(len("shared by two")); a.Shared != want || b.Shared != b.Size || list[2].Shared != b.Size {
		t.Errorf("shared %d, want %d; %d of %d; %d", a.Shared, want, b.Shared, b.Size, list[2].Shared)
	}
	u, err := collect.UsageOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := collect.Usage{Models: 3, Blobs: 7, Bytes: total, SharedBytes: b.Size, SavedBytes: a.Size + 2*b.Size - total}
	if diff := cmp.Diff(want, u); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}

	storetest.PutModel(t, s, "a", "new")
	storetest.Leave(t, s, "push-"+storetest.SomeDigest.Encoded()+"/state", "12345", time.Hour)
	if u, err = collect.UsageOf(t.Context(), s); err != nil || u.ReclaimableBlobs != 3 || u.Unfinished != 1 ||
		u.UnfinishedBytes != 5 {
		t.Errorf("usage %+v, %v", u, err)
	}
	if freed := storetest.Prune(t, s, collect.PruneOptions{}).Bytes; freed != u.ReclaimableBytes {
		t.Errorf("%d bytes freed, Usage reported %d", freed, u.ReclaimableBytes)
	}

	// A damaged model is still listed.
	os.Remove(s.BlobPath(b.Digest))
	if u, err = collect.UsageOf(t.Context(), s); err != nil || u.Models != 3 || !strings.Contains(u.Damage, "b:latest") {
		t.Errorf("usage %+v, %v", u, err)
	}
	if list, err = storetest.ListShared(t.Context(), s); err != nil || len(list) != 3 || list[0].Shared != 0 {
		t.Errorf("list %+v, %v", list, err)
	}
}

// Blobs left out by a partial pull use no space and are not shared. The size of another tool's entry comes from its
// manifest.
func TestSharedOfPartialAndForeign(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "whole", "weights", "config")
	e, err := s.Resolve(t.Context(), storetest.MustName(t, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(s.BlobPath(digest.FromString("weights")))
	if _, err := s.PutRaw(t.Context(), storetest.MustName(t, "partial"), ocispec.MediaTypeImageManifest, e.ManifestBytes,
		store.PutOptions{Partial: true}); err != nil {
		t.Fatal(err)
	}
	if err := collect.Remove(t.Context(), s, storetest.MustName(t, "whole")); err != nil {
		t.Fatal(err)
	}
	storetest.PutEntry(t, s, "foreign", ocispec.MediaTypeImageManifest, storetest.Artifact(t, s, "config", ""))
	list, err := storetest.ListShared(t.Context(), s)
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
	if r, err := fsck.Run(t.Context(), s, fsck.Options{}); err != nil || len(r.Problems) > 0 {
		t.Errorf("fsck: %+v, %v", r.Problems, err)
	}
}
