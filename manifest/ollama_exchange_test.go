package manifest

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

	"github.com/opencontainers/go-digest"
)

// ollamaFolder is an Ollama store with writable blobs, as written by Ollama's create.
type ollamaFolder struct {
	*OllamaStore
	t *testing.T
}

func newOllama(t *testing.T) ollamaFolder {
	t.Helper()
	o, err := OpenOllama(filepath.Join(t.TempDir(), "models"))
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

func (o ollamaFolder) put(path, manifest string) {
	o.t.Helper()
	o.write(filepath.Join(o.root, path), manifest)
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

func ollamaName(t *testing.T, s string) OllamaName {
	t.Helper()
	n, err := ParseOllamaName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestImport(t *testing.T) {
	o, s := newOllama(t), newStore(t)
	manifest := o.model("tensor")
	o.put("manifests/registry.ollama.ai/library/tiny/latest", manifest)
	x, err := o.Import(t.Context(), ollamaName(t, "tiny"), s, mustName(t, "tiny"), ExchangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Resolve(t.Context(), mustName(t, "tiny"))
	if err != nil {
		t.Fatal(err)
	}
	if string(e.ManifestBytes) != manifest || e.Digest != digest.FromString(manifest) || x.Digest != e.Digest ||
		e.Format != FormatOllama {
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
	checkTidy(t, s)

	again, err := o.Import(t.Context(), ollamaName(t, "TINY"), s, mustName(t, "packed"),
		ExchangeOptions{Format: FormatModelPack})
	if err != nil {
		t.Fatal(err)
	}
	if again.Cloned+again.Copied+again.Linked != 0 {
		t.Errorf("the second import copied blobs again: %+v", again)
	}
	if e, err = s.Resolve(t.Context(), mustName(t, "packed")); err != nil || e.Format != FormatModelPack {
		t.Errorf("%+v, %v", e, err)
	}
	checkTidy(t, s)
}

// Newer Ollama releases store manifests as blobs, link to them, and may list several for one name.
func TestImportNewerLayout(t *testing.T) {
	o, s := newOllama(t), newStore(t)
	manifest := o.model("tensor")
	o.blob(manifest)
	o.put("manifests/registry.ollama.ai/library/tiny/latest", "the old one")
	link := filepath.Join(o.root, "manifests-v2/ollama.com/library/tiny/latest")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(o.blobPath(digest.FromString(manifest)), link); err != nil {
		t.Skipf("this system makes no links: %v", err)
	}
	if _, err := o.Import(t.Context(), ollamaName(t, "tiny"), s, mustName(t, "a"), ExchangeOptions{}); err != nil {
		t.Fatal(err)
	}
	list := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.ollama.manifest.list.v2+json","manifests":[`+
		`{"mediaType":"x","digest":"%s","runner":"llamacpp","format":"gguf"},{"mediaType":"x","digest":"%s",`+
		`"runner":"mlx","format":"safetensors"}]}`,
		digest.FromString("gguf"), digest.FromString(manifest))
	o.put("manifests-v2/ollama.com/library/both/latest", list)
	if x, err := o.Import(t.Context(), ollamaName(t, "both"), s, mustName(t, "b"), ExchangeOptions{}); err != nil ||
		x.Digest != digest.FromString(manifest) {
		t.Errorf("of a list: %+v, %v", x, err)
	}
	o.put("manifests-v2/ollama.com/library/gguf/latest", strings.Replace(list, `"mlx","format":"safetensors"`,
		`"x","format":"gguf"`, 1))
	_, err := o.Import(t.Context(), ollamaName(t, "gguf"), s, mustName(t, "c"), ExchangeOptions{})
	if !errors.Is(err, ErrUnknownManifest) {
		t.Errorf("a list of GGUF alone: %v", err)
	}
	// An export replaces the link and does not modify its target.
	e, err := s.Resolve(t.Context(), mustName(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Export(t.Context(), s, e, ollamaName(t, "tiny"), ExchangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info, err)
	}
}

func TestImportErrors(t *testing.T) {
	o, s := newOllama(t), newStore(t)
	good := o.model("tensor")
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	o.write(o.blobPath(digest.FromString("altered")), "ALTERED")
	o.write(o.blobPath(digest.FromString("cut")), "c")
	for _, tt := range []struct {
		name, manifest, says string
		want                 error
	}{
		{"absent", "", "not in Ollama's store", ErrNotFound},
		{"gguf", replace("image.tensor", "image.model"), "a GGUF model", ErrUnknownManifest},
		{"blob absent", replace(string(digest.FromString("tensor")), string(someDigest)), someDigest.Encoded(),
			ErrBlobMissing},
		{"blob altered",
			strings.Replace(replace(string(digest.FromString("tensor")), string(digest.FromString("altered"))), `"size":6,`,
				`"size":7,`, 1), "digest", ErrCorrupt},
		{"blob cut", replace(string(digest.FromString("tensor")), string(digest.FromString("cut"))), "not a file of 6 bytes",
			ErrCorrupt},
		{"no JSON", "{", "manifest", ErrInvalidManifest},
	} {
		if tt.manifest != "" {
			o.put("manifests/registry.ollama.ai/library/m/latest", tt.manifest)
		}
		_, err := o.Import(t.Context(), ollamaName(t, "m"), s, mustName(t, "m"), ExchangeOptions{})
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v, want %v saying %q", tt.name, err, tt.want, tt.says)
		}
		if got := names(t, s); len(got) > 0 {
			t.Errorf("%s: stored %v", tt.name, got)
		}
	}
	checkTidy(t, s)
}

func TestExport(t *testing.T) {
	o, s := newOllama(t), newStore(t)
	img, b := ollamaImage()
	for _, text := range b {
		if _, _, err := s.PutBytes(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := s.Put(t.Context(), mustName(t, "m"), img)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Resolve(t.Context(), mustName(t, "m"))
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
		ExchangeOptions{Progress: func(d, t int64) { done, total = d, t }})
	if err != nil {
		t.Fatal(err)
	}
	if x.Present != 4 || done != total || x.Present+x.Linked+x.Cloned+x.Copied != total {
		t.Errorf("report %+v, progress %d of %d", x, done, total)
	}
	manifest, err := os.ReadFile(filepath.Join(o.root, "manifests/registry.ollama.ai/me/m/latest"))
	if err != nil {
		t.Fatal(err)
	}
	if digest.FromBytes(manifest) != x.Digest || !bytes.Contains(manifest, []byte(`"name":"model.norm.weight"`)) {
		t.Errorf("manifest %s", manifest)
	}
	blobs, err := Blobs(manifest)
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
	back := newStore(t)
	y, err := o.Import(t.Context(), ollamaName(t, "me/m"), back, mustName(t, "m"),
		ExchangeOptions{Format: FormatModelPack})
	if err != nil {
		t.Fatal(err)
	}
	if y.Digest != want {
		t.Errorf("digest %s, want %s", y.Digest, want)
	}
	if y.Linked != x.Linked || x.Linked == 0 {
		t.Errorf("linked %d bytes out and %d back", x.Linked, y.Linked)
	}
	checkTidy(t, back)
	// A second export copies nothing.
	z, err := o.Export(t.Context(), s, e, ollamaName(t, "me/M"), ExchangeOptions{})
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
	defer func(was string) { ollamaServiceRoot = was }(ollamaServiceRoot)
	ollamaServiceRoot = service
	own := filepath.Join(home, ".ollama", "models")
	root := func(want string) {
		t.Helper()
		if o, err := OpenOllama(""); err != nil || o.Root() != want {
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
	s := newStore(t)
	want := putModel(t, s, "a", "one", "two")
	copied := func(from, to, format string) digest.Digest {
		t.Helper()
		d, err := s.Copy(t.Context(), mustName(t, from), mustName(t, to), format)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if got := copied("a", "host.example/deep/path/b:v1", ""); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	ollama := copied("a", "c", FormatOllama)
	if ollama == want {
		t.Error("the other encoding has the same digest")
	}
	if got := copied("c", "d", FormatOllama); got != ollama {
		t.Errorf("the same encoding: digest %s, want %s", got, ollama)
	}
	if got := copied("c", "e", FormatModelPack); got != want {
		t.Errorf("there and back: digest %s, want %s", got, want)
	}
	raw, err := s.ResolveRaw(t.Context(), mustName(t, "c"))
	if err != nil || raw.Descriptor.MediaType != dockerManifest ||
		raw.Descriptor.Annotations[annotationModelType] != "llama" {
		t.Errorf("%+v, %v", raw, err)
	}
	for _, name := range []string{"a", "host.example/deep/path/b:v1", "d", "e"} {
		remove(t, s, name)
	}
	wantBlobs(t, s, map[string]bool{"one": true, "two": true})
	remove(t, s, "c")
	wantBlobs(t, s, map[string]bool{"one": false, "two": false})
	checkTidy(t, s)
}

// Copy copies manifests of unknown kinds unchanged, but cannot convert them. PutRaw rejects a damaged model manifest.
func TestCopyUnknown(t *testing.T) {
	s := newStore(t)
	sbom := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
		`"artifactType":"application/x-sbom","config":` +
		`{"mediaType":"application/vnd.oci.empty.v1+json","digest":"` + string(digest.FromString("{}")) +
		`","size":2},"layers":[]}`)
	if _, _, err := s.PutBytes(t.Context(), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	want, err := s.PutRaw(t.Context(), mustName(t, "sbom"), "application/x-other", sbom, PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Copy(t.Context(), mustName(t, "sbom"), mustName(t, "copy"), ""); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if raw, err := s.ResolveRaw(t.Context(), mustName(t, "copy")); err != nil ||
		raw.Descriptor.MediaType != "application/vnd.oci.image.manifest.v1+json" {
		t.Errorf("%+v, %v: the manifest's own media type takes precedence", raw, err)
	}
	for _, format := range []string{FormatOllama, FormatModelPack} {
		_, err := s.Copy(t.Context(), mustName(t, "sbom"), mustName(t, "other"), format)
		if !errors.Is(err, ErrUnknownManifest) {
			t.Errorf("as %s: %v", format, err)
		}
	}
	img, b := ollamaImage()
	manifest, config := mustEncodeOllama(t, img, b)
	for d := range b {
		if _, _, err := s.PutBytes(t.Context(), []byte(b[d])); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.PutBytes(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(manifest, []byte(`"name":"config.json"`), []byte(`"name":"../config.json"`), 1)
	_, err = s.PutRaw(t.Context(), mustName(t, "bad"), "", damaged, PutOptions{})
	if !errors.Is(err, ErrInvalidManifest) {
		t.Errorf("damaged: %v", err)
	}
	if got := names(t, s); len(got) != 2 {
		t.Errorf("names %v", got)
	}
}

func init() {
	ChildJobs["exchange"] = func(ctx context.Context, s *Store, ollama string) error { // imports and exports until killed
		o, err := OpenOllama(ollama)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		for i := 0; ; i++ {
			from := OllamaName{ollamaHost, ollamaNamespace, fmt.Sprintf("m%d", i%3), ollamaTag}
			name := Name{Path: fmt.Sprintf("m%d", i%3), Tag: DefaultTag}
			if _, err := o.Import(ctx, from, s, name, ExchangeOptions{Format: FormatModelPack}); err != nil {
				return err
			}
			e, err := s.Resolve(ctx, name)
			if err != nil {
				return err
			}
			if _, err := o.Export(ctx, s, e, OllamaName{ollamaHost, "out", fmt.Sprintf("m%d", i%5), ollamaTag},
				ExchangeOptions{}); err != nil {
				return err
			}
			if err := s.Remove(ctx, name); err != nil {
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
	s := newStore(t)
	for range 10 {
		cmd := child(t, "exchange:"+o.root, s.Root())
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
		checkStore(t, s)
		checkOllama(t, o)
	}
	// The leftovers do not interfere with later imports.
	for i := range 3 {
		if _, err := o.Import(t.Context(), ollamaName(t, fmt.Sprintf("m%d", i)), s, mustName(t, "last"),
			ExchangeOptions{}); err != nil {
			t.Error(err)
		}
	}
	for _, name := range names(t, s) {
		remove(t, s, name)
	}
	begun := slices.DeleteFunc(files(t, s, "ingest"),
		func(name string) bool { return !strings.HasPrefix(name, partialPrefix) })
	if got := slices.Concat(files(t, s, "blobs/sha256"), files(t, s, "holders"), begun); len(got) > 0 {
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
		blobs, err := Blobs(b)
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
	o, s := newOllama(t), newStore(t)
	if err := os.MkdirAll(o.root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(o.root, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	putModel(t, s, "m", "one", "two")
	e, err := s.Resolve(t.Context(), mustName(t, "m"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := o.Export(t.Context(), s, e, ollamaName(t, "m"), ExchangeOptions{})
	if err != nil || x.Linked != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	owner, err := os.Stat(o.root)
	if err != nil {
		t.Fatal(err)
	}
	filepath.WalkDir(o.root, func(path string, e fs.DirEntry, err error) error {
		if info, err := e.Info(); err != nil || !sameOwner(info, owner) {
			t.Errorf("%s belongs to another user: %v", path, err)
		}
		return err
	})
	checkTidy(t, s)
}
