package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest/store/storetest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// testIndex writes a layout with images of these names. A name has a tag of containerd's after a space; one that begins
// with a minus has none.
func testIndex(t *testing.T, dir string, names ...string) map[string]digest.Digest {
	t.Helper()
	found := map[string]digest.Digest{}
	index := ocispec.Index{}
	index.SchemaVersion = 2
	for i, name := range names {
		image := rt.SmallManifest(fmt.Sprint(i))
		d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString(image),
			Size: int64(len(image)), Annotations: map[string]string{}}
		found[name] = d.Digest
		ref, whole, _ := strings.Cut(name, " ")
		if !strings.HasPrefix(ref, "-") {
			d.Annotations[ocispec.AnnotationRefName] = ref
		}
		if whole != "" {
			d.Annotations[containerdName] = whole
		}
		index.Manifests = append(index.Manifests, d)
		write(t, filepath.Join(dir, blobPath(d.Digest)), []byte(image))
	}
	b, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "index.json"), b)
	write(t, filepath.Join(dir, "oci-layout"), layoutFile)
	return found
}

// Tags and whole names are found as other programs write them. What is not clear is an error that lists the images.
func TestRoot(t *testing.T) {
	const docker = "latest docker.io/library/m:latest"
	for _, c := range []struct {
		names     []string
		ask, want string // want is a name of the list, or part of the error
		wrong     bool
	}{
		{names: []string{"v1"}, ask: "", want: "v1"},
		{names: []string{"-"}, ask: "", want: "-"},
		{names: []string{"v1", "-"}, ask: "", want: "v1"},
		{names: []string{"v1", "v2"}, ask: "v2", want: "v2"},
		{names: []string{"r.example/m:v1", "v1"}, ask: "v1", want: "v1"},
		{names: []string{"r.example/m:v1", "r.example/m:v2"}, ask: "v2", want: "r.example/m:v2"},
		{names: []string{"r.example/m:v1", "r.example/n:v1"}, ask: "r.example/n:v1", want: "r.example/n:v1"},
		{names: []string{"m:latest", "n:latest"}, ask: "n", want: "n:latest"},
		{names: []string{docker}, ask: "docker.io/library/m:latest", want: docker},
		{names: []string{docker}, ask: "latest", want: docker},
		{names: []string{"v1", "v2"}, ask: "", want: "name one: oci:DIR:v1, oci:DIR:v2", wrong: true},
		{names: []string{"-", "-2"}, ask: "", want: "name one: oci:DIR@sha256:", wrong: true},
		{names: []string{"r.example/m:v1", "r.example/n:v1"}, ask: "v1", want: "stands for several images", wrong: true},
		{names: []string{"v1"}, ask: "v2", want: "oci:DIR:v2 is not there; there are: oci:DIR:v1", wrong: true},
		{names: nil, ask: "", want: "has no image", wrong: true},
	} {
		dir := t.TempDir()
		found := testIndex(t, dir, c.names...)
		l, err := Open(t.Context(), Ref{Path: dir, Name: c.ask})
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := l.Root(t.Context())
		switch {
		case c.wrong && err == nil, c.wrong && !errors.Is(err, ErrNoImage),
			c.wrong && !strings.Contains(strings.ReplaceAll(err.Error(), dir, "DIR"), c.want):
			t.Errorf("%q of %q: %v", c.ask, c.names, err)
		case !c.wrong && (err != nil || m.Digest != found[c.want]):
			t.Errorf("%q of %q: %+v, %v", c.ask, c.names, m, err)
		}
		for _, d := range found {
			l, err := Open(t.Context(), Ref{Path: dir, Digest: d})
			if err != nil {
				t.Fatal(err)
			}
			if m, _, err := l.Root(t.Context()); err != nil || m.Digest != d {
				t.Errorf("%s of %q: %+v, %v", d, c.names, m, err)
			}
		}
	}
}

// Of an index in a layout, a store gets the image that is a model; a layout gets all that is there.
func TestIndexInLayout(t *testing.T) {
	s, back, dir := rt.NewStore(t), storetest.NewStore(t), t.TempDir()
	_, want := rt.PutModel(t, s, "m", 70000)
	mustCopy(t, named(t, s, "m"), at(t, "oci:%s:model", dir), want)
	l, err := Open(t.Context(), Ref{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	model, err := l.Manifest(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	other := rt.SmallManifest("attestation")
	write(t, filepath.Join(dir, blobPath(digest.FromString(other))), []byte(other))
	write(t, filepath.Join(dir, blobPath(digest.FromString("{}"))), []byte("{}"))
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%[2]q,"digest":%[3]q,"size":%[4]d},`+
		`{"mediaType":%[2]q,"digest":%[5]q,"size":%[6]d,"annotations":{"vnd.docker.reference.type":"attestation-manifest"}},`+
		`{"mediaType":%[2]q,"digest":%[7]q,"size":3}]}`, ocispec.MediaTypeImageIndex, ocispec.MediaTypeImageManifest,
		want, len(model), digest.FromString(other), len(other), digest.FromString("not copied"))
	write(t, filepath.Join(dir, blobPath(digest.FromString(index))), []byte(index))
	root := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		ocispec.MediaTypeImageIndex, digest.FromString(index), len(index))
	write(t, filepath.Join(dir, "index.json"), []byte(root))
	to := at(t, "oci-archive:%s.tar", dir)
	mustCopy(t, at(t, "oci:%s", dir), to, digest.FromString(index))
	r, err := Copy(t.Context(), newClient(t, nil), to, named(t, back, "m"), Options{})
	if err == nil || !strings.Contains(err.Error(), "blob is missing") {
		t.Errorf("an index of which an image is missing: %+v, %v", r, err)
	}
	mustCopy(t, at(t, "%s@%s", to, want), named(t, back, "m"), want)
	storetest.CheckTidy(t, back)
}

// What an index has beside its entries, and what an entry has that is unknown, stays.
func TestIndexKeeps(t *testing.T) {
	s, dir := rt.NewStore(t), t.TempDir()
	_, want := rt.PutModel(t, s, "m", 8)
	members, _ := handLayout(t)
	unpack(t, dir, members)
	write(t, filepath.Join(dir, "index.json"), []byte(`{"schemaVersion":2,"annotations":{"a":"b"},"new":[1],"manifests":[`+
		`{"mediaType":"x/y","digest":"sha256:00","size":3,"other":{"z":1}}]}`))
	mustCopy(t, named(t, s, "m"), at(t, "oci:%s:v1", dir), want)
	b, err := (&Layout{ref: Ref{Path: dir}}).read("index.json", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"annotations":{"a":"b"}`, `"new":[1]`, `"other":{"z":1}`, `"v1"`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s lacks %s", b, part)
		}
	}
}

// Referrers are found where oras lists them, and under the specification's referrers tag.
func TestReferrersTag(t *testing.T) {
	s, dir := rt.NewStore(t), t.TempDir()
	_, want := rt.PutModel(t, s, "m", 8)
	signature := rt.Attach(t, s, want, "text/plain", "signed").Digest
	mustCopy(t, named(t, s, "m"), at(t, "oci:%s:v1", dir), want)
	l, err := Open(t.Context(), Ref{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	list := l.index.entries()
	tag, _ := json.Marshal(ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: list[1:]})
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(tag), Size: int64(len(tag)),
		Annotations: map[string]string{ocispec.AnnotationRefName: "sha256-" + want.Encoded()}}
	index := ocispec.Index{Manifests: []ocispec.Descriptor{list[0], d}}
	index.SchemaVersion = 2
	b, _ := json.Marshal(index)
	write(t, filepath.Join(dir, blobPath(d.Digest)), tag)
	write(t, filepath.Join(dir, "index.json"), b)
	if l, err = Open(t.Context(), Ref{Path: dir}); err != nil {
		t.Fatal(err)
	}
	checkReferrers(t, l, want, signature)
	if m, name, err := l.Root(t.Context()); err != nil || m.Digest != want || name != "v1" {
		t.Errorf("the only image: %+v, %s, %v", m, name, err)
	}
}
