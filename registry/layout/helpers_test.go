package layout

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// newClient returns a client without credentials that tries twice. events may be nil.
func newClient(t testing.TB, events func(registry.Event)) *registry.Client {
	t.Helper()
	c, err := registry.New(registry.Options{Events: events, Connection: remote.Options{
		Keychain: authn.NewMultiKeychain(), Attempts: 3, Mirrors: []remote.Mirror{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// at returns a place of a layout.
func at(t testing.TB, format string, args ...any) Place {
	t.Helper()
	r, err := ParseRef(fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return Place{Layout: &r}
}

// named returns a place of a name: in a store, or if that is nil in a registry.
func named(t testing.TB, s *store.Store, name string) Place {
	t.Helper()
	n, err := manifest.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	return Place{Name: n, Store: s}
}

// mustCopy copies an image and checks its digest.
func mustCopy(t testing.TB, from, to Place, want digest.Digest) *Report {
	t.Helper()
	r, err := Copy(t.Context(), newClient(t, nil), from, to, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Digest != want {
		t.Fatalf("%s to %s: digest %s, want %s", from, to, r.Digest, want)
	}
	return r
}

// checkReferrers compares the referrers that documents list with the wanted ones.
func checkReferrers(t testing.TB, from registry.Documents, subject digest.Digest, want ...digest.Digest) {
	t.Helper()
	list, err := from.Referrers(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	var got []digest.Digest
	for _, d := range list {
		got = append(got, d.Digest)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("referrers of %s: %v, want %v", subject, got, want)
	}
}

// files lists the files below a folder, relative to it.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// checkLayout checks that a folder is a layout with exactly these names, and with intact blobs and nothing else.
func checkLayout(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, file := range files(t, dir) {
		if file == ocispec.ImageIndexFile || file == ocispec.ImageLayoutFile {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if want := blobPath(digest.FromBytes(b)); file != want {
			t.Errorf("%s: its content belongs to %s", file, want)
		}
	}
	checkNames(t, Ref{Path: dir}, names...)
}

// checkNames compares the names in a layout.
func checkNames(t testing.TB, ref Ref, want ...string) {
	t.Helper()
	l, err := Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var got []string
	for _, d := range l.index.entries() {
		if name := nameOf(d); name != "" {
			got = append(got, name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s has the names %q, want %q", ref, got, want)
	}
}

// tarOf returns an archive. A member whose name ends with a slash is a folder.
func tarOf(t testing.TB, members ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range members {
		content := h.Uname // tests put the content here
		h.Uname, h.Size, h.Mode = "", int64(len(content)), 0o644
		if h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink || h.Typeflag == tar.TypeFifo {
			h.Size = 0
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// file returns a member of an archive.
func file(name, content string) tar.Header {
	return tar.Header{Name: name, Uname: content, Typeflag: tar.TypeReg}
}

// write writes a file of a test and returns its path.
func write(t testing.TB, path string, b []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// handLayout returns the members of a layout, made by hand, of an image without layers.
func handLayout(t testing.TB, names ...string) (members []tar.Header, d digest.Digest) {
	t.Helper()
	image := rt.SmallManifest(strings.Repeat("x", 8))
	d = digest.FromString(image)
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}}
	for _, name := range names {
		e := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: d, Size: int64(len(image))}
		if name != "" {
			e.Annotations = map[string]string{ocispec.AnnotationRefName: name}
		}
		index.Manifests = append(index.Manifests, e)
	}
	b, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	return []tar.Header{
		file("oci-layout", string(layoutFile)), file("index.json", string(b)), file(blobPath(d), image),
		file(blobPath(digest.FromString("{}")), "{}"),
	}, d
}

// unpack writes the members of an archive to a folder.
func unpack(t testing.TB, dir string, members []tar.Header) {
	t.Helper()
	for _, m := range members {
		write(t, filepath.Join(dir, filepath.FromSlash(m.Name)), []byte(m.Uname))
	}
}
