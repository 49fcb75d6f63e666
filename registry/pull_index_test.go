package registry

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	ft "github.com/ingotml/ingot/manifest/foreign/foreigntest"
	rt "github.com/ingotml/ingot/registry/registrytest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Of several models in an index, the one for this machine's processor is pulled, if each is for another one. Otherwise
// the error tells them apart.
func TestPullIndexOfModels(t *testing.T) {
	p := rt.New(t)
	other := map[string]string{"amd64": "arm64"}[runtime.GOARCH]
	if other == "" {
		other = "amd64"
	}
	put := func(content string) digest.Digest {
		return ft.ModelRunner(t, ft.Files{"a.gguf": content}, true, nil).Push(p, "team/model", "")
	}
	container := ft.Container(t, []string{"sh"}, []ft.Member{{Name: "a"}}).Push(p, "team/model", "")
	q4, q8 := put("q4"), put("q8")
	type entry struct {
		of              digest.Digest
		processor, name string
	}
	for _, c := range []struct {
		name string
		list []entry
		want digest.Digest
		says []string
	}{
		{"processors", []entry{{q4, other, ""}, {q8, runtime.GOARCH, ""}}, q8, nil},
		{"the same for all", []entry{{q4, other, ""}, {q4, runtime.GOARCH, ""}}, q4, nil},
		{"beside a container image", []entry{{container, runtime.GOARCH, ""}, {q4, "", ""}}, q4, nil},
		{"quantizations", []entry{{q4, runtime.GOARCH, "Q4_K_M"}, {q8, runtime.GOARCH, "Q8_0"}}, "",
			[]string{"(linux/" + runtime.GOARCH + ", Q4_K_M)", "@" + string(q8), "Q8_0"}},
		{"other processors", []entry{{q4, "s390x", ""}, {q8, "riscv64", ""}}, "", []string{"(linux/s390x)"}},
		{"no platform", []entry{{q4, "", ""}, {q8, "", ""}}, "", []string{"name one", "@" + string(q4)}},
	} {
		index := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex}
		index.SchemaVersion = 2
		for _, e := range c.list {
			d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: e.of,
				Size: int64(len(p.Manifest("team/model", string(e.of))))}
			if e.processor != "" {
				d.Platform = &ocispec.Platform{OS: "linux", Architecture: e.processor}
			}
			if e.name != "" {
				d.Annotations = map[string]string{ocispec.AnnotationTitle: e.name}
			}
			index.Manifests = append(index.Manifests, d)
		}
		b, err := json.Marshal(index)
		if err != nil {
			t.Fatal(err)
		}
		p.PutManifest("team/model", "latest", ocispec.MediaTypeImageIndex, b)
		r, err := newPullClient(t).Pull(t.Context(), newEmptyStore(t), p.Name("team/model"), PullOptions{Files: true})
		if c.want != "" && (err != nil || r.Digest != c.want || r.Files == nil) {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
		for _, says := range c.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", c.name, err, says)
			}
		}
	}
}

// Only the layers that a model is made of are pulled, and of files only those that are wanted.
func TestPullFiles(t *testing.T) {
	files := ft.Files{"config.json": "{}", "w.safetensors": "weights", "train.csv": "a dataset", "README.md": "Hi"}
	p := rt.New(t)
	ft.ModelPack(t, files, ft.Raw).Push(p, "team/model", "latest")
	s := newEmptyStore(t)
	r, err := newPullClient(t).Pull(t.Context(), s, p.Name("team/model"), PullOptions{Files: true, Model: true})
	if err != nil || r.Partial != 0 || r.Files == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	has := func(content string) bool { return s.HasBlob(digest.FromString(content), int64(len(content))) }
	if !has("weights") || !has("Hi") || has("a dataset") {
		t.Error("other blobs than those of the model")
	}
	r.Done()
	s = newEmptyStore(t)
	release, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	f, err := newPullClient(t).FetchFiles(t.Context(), s, p.Name("team/model"), FilesOptions{Patterns: []string{"*.md"}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Done()
	if !has("Hi") || has("{}") || has("weights") || len(f.Fetched) != 2 {
		t.Errorf("fetched %v", f.Fetched)
	}
	_, err = newPullClient(t).Pull(t.Context(), s, p.Name("team/model"),
		PullOptions{Files: true, Only: []string{"*.json"}})
	if err == nil || !strings.Contains(err.Error(), "ingot extract") {
		t.Error(err)
	}
	stored, err := newPullClient(t).Pull(t.Context(), s, p.Name("team/model"), PullOptions{})
	if err != nil || stored.Files != nil || !has("a dataset") {
		t.Errorf("as it is: %+v, %v", stored, err)
	}
}
