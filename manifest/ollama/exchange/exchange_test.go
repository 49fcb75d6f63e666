package exchange

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

func TestImport(t *testing.T) {
	o, s := newOllama(t), storetest.NewStore(t)
	manifestBytes := o.model("tensor")
	o.put("manifests/registry.ollama.ai/library/tiny/latest", manifestBytes)
	x, err := o.Import(t.Context(), ollamaName(t, "tiny"), s, storetest.MustName(t, "tiny"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Resolve(t.Context(), storetest.MustName(t, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	if string(e.ManifestBytes) != manifestBytes || e.Digest != digest.FromString(manifestBytes) || x.Digest != e.Digest ||
		e.Format != manifest.FormatOllama {
		t.Errorf("stored %s as %s in %s", e.ManifestBytes, e.Digest, e.Format)
	}
	if x.Linked != 0 || x.Present != 0 || x.Cloned+x.Copied != int64(len("tensor")+2+len(tinyConfig)) {
		t.Errorf("report %+v: a writable file must not be hard-linked", x)
	}
	for _, l := range e.Image.Layers {
		info, err := os.Stat(s.BlobPath(l.Digest))
		if err != nil || info.Mode().Perm() != 0o444 {
			t.Errorf("blob of %s: %v, %v", l.Name, info, err)
		}
		theirs, err := os.Stat(o.blobPath(l.Digest))
		if err != nil || theirs.Mode().Perm() != 0o644 || os.SameFile(info, theirs) {
			t.Errorf("Ollama's blob of %s changed: %v, %v", l.Name, theirs, err)
		}
	}
	// Later changes of Ollama's files do not affect the store.
	o.write(o.blobPath(digest.FromString("tensor")), "TENSOR")
	storetest.CheckTidy(t, s)

	again, err := o.Import(t.Context(), ollamaName(t, "TINY"), s, storetest.MustName(t, "packed"),
		Options{Format: manifest.FormatModelPack})
	if err != nil {
		t.Fatal(err)
	}
	if again.Cloned+again.Copied+again.Linked != 0 {
		t.Errorf("the second import copied blobs again: %+v", again)
	}
	if e, err = s.Resolve(t.Context(), storetest.MustName(t, "packed")); err != nil ||
		e.Format != manifest.FormatModelPack {
		t.Errorf("%+v, %v", e, err)
	}
	storetest.CheckTidy(t, s)
}

// Newer Ollama releases store manifests as blobs, link to them, and may list several for one name.
func TestImportNewerLayout(t *testing.T) {
	o, s := newOllama(t), storetest.NewStore(t)
	manifestBytes := o.model("tensor")
	o.blob(manifestBytes)
	o.put("manifests/registry.ollama.ai/library/tiny/latest", "the old one")
	link := filepath.Join(o.root, "manifests-v2/ollama.com/library/tiny/latest")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(o.blobPath(digest.FromString(manifestBytes)), link); err != nil {
		t.Skipf("this system makes no links: %v", err)
	}
	if _, err := o.Import(t.Context(), ollamaName(t, "tiny"), s, storetest.MustName(t, "a"), Options{}); err != nil {
		t.Fatal(err)
	}
	gguf := fmt.Sprintf(`{"schemaVersion":2,"config":{"mediaType":"application/vnd.docker.container.image.v1+json",`+
		`"digest":"%s","size":2},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"%[1]s","size":2}]}`,
		digest.FromString("{}"))
	o.put("blobs/sha256-"+digest.FromString(gguf).Encoded(), gguf)
	list := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.ollama.manifest.list.v2+json","manifests":[`+
		`{"mediaType":"x","digest":"%s","runner":"llamacpp","format":"gguf"},{"mediaType":"x","digest":"%s",`+
		`"runner":"mlx","format":"safetensors"}]}`,
		digest.FromString(gguf), digest.FromString(manifestBytes))
	o.put("manifests-v2/ollama.com/library/both/latest", list)
	if x, err := o.Import(t.Context(), ollamaName(t, "both"), s, storetest.MustName(t, "b"), Options{}); err != nil ||
		x.Digest != digest.FromString(manifestBytes) {
		t.Errorf("of a list: %+v, %v", x, err)
	}
	o.put("manifests-v2/ollama.com/library/gguf/latest", strings.Replace(list, `"mlx","format":"safetensors"`,
		`"x","format":"gguf"`, 1))
	_, err := o.Import(t.Context(), ollamaName(t, "gguf"), s, storetest.MustName(t, "c"), Options{})
	if !errors.Is(err, manifest.ErrUnknownManifest) {
		t.Errorf("a list of GGUF alone: %v", err)
	}
	g, err := o.Files(ollamaName(t, "gguf"))
	if err != nil || g == nil || len(g.Layers) != 1 || g.Layers[0].Digest != digest.FromString("{}") {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := o.Files(ollamaName(t, "both")); err != nil || g != nil {
		t.Errorf("%+v, %v", g, err)
	}
	// An export replaces the link and does not modify its target.
	e, err := s.Resolve(t.Context(), storetest.MustName(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Export(t.Context(), s, e, ollamaName(t, "tiny"), Options{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
}

func TestImportErrors(t *testing.T) {
	o, s := newOllama(t), storetest.NewStore(t)
	good := o.model("tensor")
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	o.write(o.blobPath(digest.FromString("altered")), "ALTERED")
	o.write(o.blobPath(digest.FromString("cut")), "c")
	for _, tt := range []struct {
		name, manifest, says string
		want                 error
	}{
		{"absent", "", "not in Ollama's store", manifest.ErrNotFound},
		{"gguf", replace("image.tensor", "image.model"), "a GGUF model", manifest.ErrUnknownManifest},
		{"blob absent", replace(string(digest.FromString("tensor")), string(storetest.SomeDigest)),
			storetest.SomeDigest.Encoded(),
			manifest.ErrBlobMissing},
		{"blob altered",
			strings.Replace(replace(string(digest.FromString("tensor")), string(digest.FromString("altered"))), `"size":6,`,
				`"size":7,`, 1), "digest", manifest.ErrCorrupt},
		{"blob cut", replace(string(digest.FromString("tensor")), string(digest.FromString("cut"))), "not a file of 6 bytes",
			manifest.ErrCorrupt},
		{"no JSON", "{", "manifest", manifest.ErrInvalidManifest},
	} {
		if tt.manifest != "" {
			o.put("manifests/registry.ollama.ai/library/m/latest", tt.manifest)
		}
		_, err := o.Import(t.Context(), ollamaName(t, "m"), s, storetest.MustName(t, "m"), Options{})
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %v saying %q", tt.name, err, tt.want, tt.says)
		}
		if got := storetest.Names(t, s); len(got) > 0 {
			t.Errorf("%s: stored %v", tt.name, got)
		}
	}
	storetest.CheckTidy(t, s)
}

func TestOpenOllama(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("OLLAMA_MODELS", "")
	service := filepath.Join(t.TempDir(), "service")
	defer func(was string) { serviceRoot = was }(serviceRoot)
	serviceRoot = service
	own := filepath.Join(home, ".ollama", "models")
	root := func(want string) {
		t.Helper()
		if o, err := Open(""); err != nil || o.Root() != want {
			t.Errorf("%v, %v, want %s", o, err, want)
		}
	}
	root(own)
	if err := os.Mkdir(service, 0o755); err != nil {
		t.Fatal(err)
	}
	root(service)
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	root(own)
	t.Setenv("OLLAMA_MODELS", service)
	root(service)
}
