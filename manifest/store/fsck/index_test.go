package fsck_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/fsck"
	"github.com/ingotml/ingot/manifest/store/storetest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// unreadable are indexes that do not say which models the store has. They get the text of the one that was there.
var unreadable = map[string]func(path, text string) error{
	"empty file":           rewrite(func(string) string { return "" }),
	"truncated":            rewrite(func(text string) string { return text[:len(text)/2] }),
	"followed by more":     rewrite(func(text string) string { return text + "{}" }),
	"zeros":                rewrite(func(text string) string { return strings.Repeat("\x00", len(text)) }),
	"null":                 rewrite(func(string) string { return "null" }),
	"list":                 rewrite(func(string) string { return "[]" }),
	"no manifests":         rewrite(func(string) string { return `{"schemaVersion":2}` }),
	"manifests are null":   rewrite(func(string) string { return `{"schemaVersion":2,"manifests":null}` }),
	"manifests are a text": rewrite(func(string) string { return `{"schemaVersion":2,"manifests":"none"}` }),
	"manifests are an object": rewrite(func(string) string {
		return `{"schemaVersion":2,"manifests":{}}`
	}),
	"manifests twice": rewrite(func(text string) string { return strings.TrimSuffix(text, "}") + `,"manifests":[]}` }),
	"manifests in another case": rewrite(func(text string) string {
		return strings.TrimSuffix(text, "}") + `,"Manifests":[]}`
	}),
	"manifests in letters that fold": rewrite(func(text string) string {
		return strings.TrimSuffix(text, "}") + `,"manifeſts":[]}`
	}),
	"digest twice": rewrite(func(text string) string {
		return strings.Replace(text, `"digest":`, `"digest":"sha256:00","digest":`, 1)
	}),
	"size is a text":         replace(`"size":`, `"size":"1","x":`),
	"other schema version":   replace(`Version":2`, `Version":3`),
	"without schema version": replace(`"schemaVersion":2,`, ""),
	"an image's manifest": rewrite(func(text string) string {
		return strings.Replace(text, ocispec.MediaTypeImageIndex, ocispec.MediaTypeImageManifest, 1)
	}),
	"deep":   rewrite(func(string) string { return strings.Repeat("[", 100000) }),
	"large":  rewrite(func(text string) string { return text + strings.Repeat(" ", 64<<20) }),
	"gone":   func(path, _ string) error { return os.Remove(path) },
	"folder": func(path, _ string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
}

func replace(old, by string) func(path, text string) error {
	return rewrite(func(text string) string { return strings.Replace(text, old, by, 1) })
}

func rewrite(change func(text string) string) func(path, text string) error {
	return func(path, text string) error { return os.WriteFile(path, []byte(change(text)), 0o644) }
}

// An index that cannot be read is not that of an empty store: nothing is listed or removed, fsck reports it, and the
// repair finds the images again.
func TestUnreadableIndex(t *testing.T) {
	for name, damage := range unreadable {
		t.Run(name, func(t *testing.T) {
			s := storetest.NewStore(t)
			d := storetest.PutModel(t, s, "team/a", "a", "shared")
			storetest.PutModel(t, s, "b", "b", "shared")
			path := s.Path(ocispec.ImageIndexFile)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(path, string(text)); err != nil {
				t.Fatal(err)
			}
			all := map[string]bool{"a": true, "b": true, "shared": true}
			if _, err := s.List(t.Context()); !errors.Is(err, manifest.ErrIndex) || strings.Contains(err.Error(), "\n") {
				t.Errorf("list: %v", err)
			}
			for _, o := range []collect.PruneOptions{{}, {DryRun: true}, {Unfinished: true}} {
				if r, err := collect.Prune(t.Context(), s, o); !errors.Is(err, manifest.ErrIndex) || len(r.Items) > 0 {
					t.Errorf("prune: %v, %v", r, err)
				}
			}
			if err := collect.Remove(t.Context(), s, storetest.MustName(t, "b")); !errors.Is(err, manifest.ErrIndex) {
				t.Errorf("remove: %v", err)
			}
			storetest.WantBlobs(t, s, all)
			r := storetest.Fsck(t, s, fsck.Options{})
			storetest.WantProblems(t, r, "index index.json")
			if r.OK() || r.Unnamed != 2 {
				t.Errorf("the report: %+v", r)
			}
			storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{Repair: true}), "index index.json fixed")
			if r := storetest.Fsck(t, s, fsck.Options{}); !r.OK() || r.Models != 2 || r.Unnamed != 0 {
				t.Errorf("after the repair: %+v", r)
			}
			entry, err := s.Resolve(t.Context(), storetest.MustName(t, "recovered/"+d.Encoded()[:12]))
			if err != nil || entry.Digest != d {
				t.Errorf("recovered: %v, %v", entry, err)
			}
			storetest.Prune(t, s, collect.PruneOptions{})
			storetest.WantBlobs(t, s, all)
			storetest.CheckStore(t, s)
			if name != "gone" && len(storetest.Files(t, s, store.QuarantineDir)) != 1 {
				t.Errorf("the damaged file is not kept")
			}
		})
	}
}

// A store that has lost its oci-layout file, or with it the index, is not an empty one.
func TestLayoutGone(t *testing.T) {
	for _, index := range []bool{true, false} {
		s := storetest.NewStore(t)
		storetest.PutModel(t, s, "a", "a")
		want := []string{"index oci-layout"}
		if err := os.Remove(s.Path(ocispec.ImageLayoutFile)); err != nil {
			t.Fatal(err)
		}
		if !index {
			want = []string{"index index.json", "index oci-layout"}
			if err := os.Remove(s.Path(ocispec.ImageIndexFile)); err != nil {
				t.Fatal(err)
			}
		}
		open, err := store.OpenExisting(s.Root())
		if err != nil {
			t.Fatal(err)
		}
		storetest.WantProblems(t, storetest.Fsck(t, open, fsck.Options{}), want...)
		if open, err = store.Open(s.Root()); err != nil {
			t.Fatal(err)
		}
		if _, err := collect.Prune(t.Context(), open, collect.PruneOptions{}); errors.Is(err, manifest.ErrIndex) == index {
			t.Errorf("prune: %v", err)
		}
		storetest.WantBlobs(t, s, map[string]bool{"a": true})
		storetest.Fsck(t, s, fsck.Options{Repair: true})
		storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{}))
		storetest.CheckStore(t, s)
	}
}

// An entry that no command finds is reported and mended, and its blobs stay.
func TestWrongEntries(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *ocispec.Descriptor)
		prunes bool
		want   string
	}{
		"name is a path":   {named("../../x"), true, "recovered/"},
		"name has escapes": {named("a\x1b[31m"), true, "recovered/"},
		"name is long":     {named(strings.Repeat("a/", 5000)), true, "recovered/"},
		"name has a digest": {named("a@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), true,
			"recovered/"},
		"name of another":   {named("b:latest"), true, ""},
		"size":              {func(d *ocispec.Descriptor) { d.Size = -5 }, true, "a:latest"},
		"media type":        {func(d *ocispec.Descriptor) { d.MediaType = "text/plain" }, true, "a:latest"},
		"digest is a path":  {func(d *ocispec.Descriptor) { d.Digest = "sha256:../../x" }, false, "recovered/"},
		"digest is missing": {func(d *ocispec.Descriptor) { d.Digest = "" }, false, "recovered/"},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.NewStore(t)
			storetest.PutModel(t, s, "b", "b")
			storetest.PutModel(t, s, "a", "a")
			if err := s.UpdateIndex(t.Context(), func(idx *ocispec.Index) error {
				c.change(&idx.Manifests[1])
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			_, err := collect.Prune(t.Context(), s, collect.PruneOptions{})
			if c.prunes != (err == nil) || err != nil && !errors.Is(err, manifest.ErrIndex) {
				t.Errorf("prune: %v", err)
			}
			storetest.WantBlobs(t, s, map[string]bool{"a": true, "b": true})
			l, err := s.Listing(t.Context())
			if err != nil || (l.Skipped == 1) != (len(l.Models) == 1) {
				t.Errorf("%d models are listed, %d entries skipped, %v", len(l.Models), l.Skipped, err)
			}
			r := storetest.Fsck(t, s, fsck.Options{})
			if len(r.Problems) == 0 || r.Problems[0].Path != "index.json#1" {
				t.Errorf("problems: %v", storetest.ProblemLines(r))
			}
			if r := storetest.Fsck(t, s, fsck.Options{Repair: true}); !r.OK() {
				t.Errorf("not fixed: %v", storetest.ProblemLines(r))
			}
			storetest.WantProblems(t, storetest.Fsck(t, s, fsck.Options{}))
			if names := strings.Join(storetest.Names(t, s), " "); !strings.Contains(names, c.want) {
				t.Errorf("the models are %s", names)
			}
			storetest.Prune(t, s, collect.PruneOptions{})
			storetest.WantBlobs(t, s, map[string]bool{"a": c.want != "", "b": true})
		})
	}
}

func named(name string) func(*ocispec.Descriptor) {
	return func(d *ocispec.Descriptor) { d.Annotations[ocispec.AnnotationRefName] = name }
}

// What create has replaced is counted, and is no problem.
func TestUnnamed(t *testing.T) {
	s := storetest.NewStore(t)
	storetest.PutModel(t, s, "a", "old")
	storetest.PutModel(t, s, "a", "new")
	r := storetest.Fsck(t, s, fsck.Options{})
	storetest.WantProblems(t, r)
	if r.Unnamed != 1 {
		t.Errorf("%d images without a name", r.Unnamed)
	}
}
