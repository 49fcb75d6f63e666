package exchange

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/collect"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/storetest"
	"github.com/opencontainers/go-digest"
)

// ollamaFolder is an Ollama store with writable blobs, as written by Ollama's create.
type ollamaFolder struct {
	*Ollama
	t *testing.T
}

func newOllama(t *testing.T) ollamaFolder {
	t.Helper()
	o, err := Open(filepath.Join(t.TempDir(), "models"))
	if err != nil {
		t.Fatal(err)
	}
	return ollamaFolder{o, t}
}

func (o ollamaFolder) blob(text string) digest.Digest {
	o.t.Helper()
	d := digest.FromString(text)
	o.write(o.blobPath(d), text)
	return d
}

func (o ollamaFolder) write(path, text string) {
	o.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		o.t.Fatal(err)
	}
}

const tinyConfig = `{"model_format":"safetensors","capabilities":["completion"]}`

// model stores the blobs of a model with one tensor and a config file, and returns its manifest.
func (o ollamaFolder) model(tensor string) string {
	o.t.Helper()
	config, w, file := o.blob(tinyConfig), o.blob(tensor), o.blob("{}")
	return fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",`+
		`"config":{"mediaType":`+
		`"application/vnd.docker.container.image.v1+json","digest":"%s","size":%d},"layers":[`+
		`{"mediaType":"application/vnd.ollama.image.tensor","digest":"%s","size":%d,"name":"w"},`+
		`{"mediaType":"application/vnd.ollama.image.json","digest":"%s","size":2,"name":"config.json"}]}`+"\n", config,
		len(tinyConfig), w, len(tensor), file)
}

func (o ollamaFolder) put(path, manifestBytes string) {
	o.t.Helper()
	o.write(filepath.Join(o.root, path), manifestBytes)
}

// partials lists temporary files, which are neither blobs nor manifests.
func (o ollamaFolder) partials() (list []string) {
	o.t.Helper()
	filepath.WalkDir(o.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), "ingot") {
			list = append(list, path)
		}
		return err
	})
	return list
}

func ollamaName(t *testing.T, s string) ollama.Name {
	t.Helper()
	n, err := ollama.ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

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
	list := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.ollama.manifest.list.v2+json","manifests":[`+
		`{"mediaType":"x","digest":"%s","runner":"llamacpp","format":"gguf"},{"mediaType":"x","digest":"%s",`+
		`"runner":"mlx","format":"safetensors"}]}`,
		digest.FromString("gguf"), digest.FromString(manifestBytes))
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

func TestExport(t *testing.T) {
	o, s := newOllama(t), storetest.NewStore(t)
	img, b := storetest.OllamaImage()
	for _, text := range b {
		if _, _, err := s.PutBytes(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := s.Put(t.Context(), storetest.MustName(t, "m"), img)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Resolve(t.Context(), storetest.MustName(t, "m"))
	if err != nil {
		t.Fatal(err)
	}
	old := o.blob("norm") // already present, unreferenced and a day old
	yesterday := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(o.blobPath(old), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	o.write(o.blobPath(digest.FromString("draft norm")), "cut") // truncated
	var done, total int64
	x, err := o.Export(t.Context(), s, e, ollamaName(t, "me/m"),
		Options{Progress: func(d, t int64) { done, total = d, t }})
	if err != nil {
		t.Fatal(err)
	}
	if x.Present != 4 || done != total || x.Present+x.Linked+x.Cloned+x.Copied != total {
		t.Errorf("report %+v, progress %d of %d", x, done, total)
	}
	manifestBytes, err := os.ReadFile(filepath.Join(o.root, "manifests/registry.ollama.ai/me/m/latest"))
	if err != nil {
		t.Fatal(err)
	}
	if digest.FromBytes(manifestBytes) != x.Digest ||
		!bytes.Contains(manifestBytes, []byte(`"name":"model.norm.weight"`)) {
		t.Errorf("manifest %s", manifestBytes)
	}
	blobs, err := manifest.Blobs(manifestBytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range blobs {
		info, err := os.Stat(o.blobPath(d.Digest))
		if err != nil || info.Size() != d.Size || info.Mode().Perm()&0o444 != 0o444 ||
			time.Since(info.ModTime()) > time.Minute {
			t.Errorf("blob %s: %v, %v", d.Digest, info, err)
		}
		text, err := os.ReadFile(o.blobPath(d.Digest))
		if err != nil || digest.FromBytes(text) != d.Digest {
			t.Errorf("blob %s: %q, %v", d.Digest, text, err)
		}
	}
	if got := o.partials(); len(got) > 0 {
		t.Errorf("left: %v", got)
	}

	// Importing the model into another store links the same blobs, and yields the same digest.
	back := storetest.NewStore(t)
	y, err := o.Import(t.Context(), ollamaName(t, "me/m"), back, storetest.MustName(t, "m"),
		Options{Format: manifest.FormatModelPack})
	if err != nil {
		t.Fatal(err)
	}
	if y.Digest != want {
		t.Errorf("digest %s, want %s", y.Digest, want)
	}
	if y.Linked != x.Linked || x.Linked == 0 {
		t.Errorf("linked %d bytes out and %d back", x.Linked, y.Linked)
	}
	storetest.CheckTidy(t, back)
	// A second export copies nothing.
	z, err := o.Export(t.Context(), s, e, ollamaName(t, "me/M"), Options{})
	if err != nil || z.Present != total {
		t.Errorf("%+v, %v", z, err)
	}
	if entries, _ := os.ReadDir(filepath.Join(o.root, "manifests/registry.ollama.ai/me")); len(entries) != 1 {
		t.Errorf("a name in another case is stored separately: %v", entries)
	}
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

func TestCopy(t *testing.T) {
	s := storetest.NewStore(t)
	want := storetest.PutModel(t, s, "a", "one", "two")
	copied := func(from, to, format string) digest.Digest {
		t.Helper()
		d, err := s.Copy(t.Context(), storetest.MustName(t, from), storetest.MustName(t, to), format)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if got := copied("a", "host.example/deep/path/b:v1", ""); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	theirs := copied("a", "c", manifest.FormatOllama)
	if theirs == want {
		t.Error("the other encoding has the same digest")
	}
	if got := copied("c", "d", manifest.FormatOllama); got != theirs {
		t.Errorf("the same encoding: digest %s, want %s", got, theirs)
	}
	if got := copied("c", "e", manifest.FormatModelPack); got != want {
		t.Errorf("there and back: digest %s, want %s", got, want)
	}
	raw, err := s.ResolveRaw(t.Context(), storetest.MustName(t, "c"))
	if err != nil || raw.Descriptor.MediaType != manifest.DockerManifest ||
		raw.Descriptor.Annotations[manifest.AnnotationModelType] != "llama" {
		t.Errorf("%+v, %v", raw, err)
	}
	for _, name := range []string{"a", "host.example/deep/path/b:v1", "d", "e"} {
		storetest.Remove(t, s, name)
	}
	storetest.WantBlobs(t, s, map[string]bool{"one": true, "two": true})
	storetest.Remove(t, s, "c")
	storetest.WantBlobs(t, s, map[string]bool{"one": false, "two": false})
	storetest.CheckTidy(t, s)
}

// Copy copies manifests of unknown kinds unchanged, but cannot convert them. PutRaw rejects a damaged model manifest.
func TestCopyUnknown(t *testing.T) {
	s := storetest.NewStore(t)
	sbom := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
		`"artifactType":"application/x-sbom","config":` +
		`{"mediaType":"application/vnd.oci.empty.v1+json","digest":"` + string(digest.FromString("{}")) +
		`","size":2},"layers":[]}`)
	if _, _, err := s.PutBytes(t.Context(), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	want, err := s.PutRaw(t.Context(), storetest.MustName(t, "sbom"), "application/x-other", sbom, store.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Copy(t.Context(), storetest.MustName(t, "sbom"), storetest.MustName(t, "copy"), ""); err != nil ||
		got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if raw, err := s.ResolveRaw(t.Context(), storetest.MustName(t, "copy")); err != nil ||
		raw.Descriptor.MediaType != "application/vnd.oci.image.manifest.v1+json" {
		t.Errorf("%+v, %v: the manifest's own media type takes precedence", raw, err)
	}
	for _, format := range []string{manifest.FormatOllama, manifest.FormatModelPack} {
		_, err := s.Copy(t.Context(), storetest.MustName(t, "sbom"), storetest.MustName(t, "other"), format)
		if !errors.Is(err, manifest.ErrUnknownManifest) {
			t.Errorf("as %s: %v", format, err)
		}
	}
	img, b := storetest.OllamaImage()
	manifestBytes, config := storetest.MustEncodeOllama(t, img, b)
	for d := range b {
		if _, _, err := s.PutBytes(t.Context(), []byte(b[d])); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.PutBytes(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(manifestBytes, []byte(`"name":"config.json"`), []byte(`"name":"../config.json"`), 1)
	_, err = s.PutRaw(t.Context(), storetest.MustName(t, "bad"), "", damaged, store.PutOptions{})
	if !errors.Is(err, manifest.ErrInvalidManifest) {
		t.Errorf("damaged: %v", err)
	}
	if got := storetest.Names(t, s); len(got) != 2 {
		t.Errorf("names %v", got)
	}
}

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
	for range 10 {
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
