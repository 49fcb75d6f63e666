package hub

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// The cache is the one of huggingface_hub: what is there is not fetched, and --keep-source adds to it.
func TestCache(t *testing.T) {
	h := start(t)
	repository := h.Add("tiny/model", files())
	root := t.TempDir()
	partial := filepath.Join(root, "models--tiny--model", "blobs", sum(files()["model-1.safetensors"])+".incomplete")
	if err := os.MkdirAll(filepath.Dir(partial), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(partial, random(1, 5<<20)[:4<<20], 0o644); err != nil { // of an interrupted download
		t.Fatal(err)
	}
	checkAll(t, open(t, client(h, Options{Cache: root, Keep: true}), "hf.co/tiny/model"), files())
	if sent := h.Sent(); sent > 2<<20 {
		t.Errorf("%d bytes were sent, although most of them were there", sent)
	}
	link := filepath.Join(root, "models--tiny--model", "snapshots", repository.Head(), "1_Pooling", "config.json")
	if to, err := os.Readlink(link); err != nil || !strings.HasPrefix(to, filepath.Join("..", "..", "..", "blobs")) {
		t.Error(to, err)
	}
	before := len(h.Requests())
	f := open(t, client(h, Options{Cache: root}), "hf.co/tiny/model")
	expectAll(f, files())
	checkAll(t, f, files())
	for _, r := range h.Requests()[before:] {
		if strings.Contains(r.Path, "/resolve/") || r.CDN {
			t.Errorf("a file of the cache was fetched: %+v", r)
		}
	}
	h.Close()
	f = open(t, client(h, Options{Cache: root, Offline: true}), "hf.co/tiny/model")
	expectAll(f, files())
	checkAll(t, f, files())
	etag := f.ETag("model-2.safetensors")
	if _, _, commit := f.Commit(); commit != repository.Head() || etag != sum(files()["model-2.safetensors"]) {
		t.Error(commit, etag)
	}
	n, _ := ParseName("hf.co/tiny/other")
	if _, err := client(h, Options{Cache: root, Offline: true}).Open(t.Context(), n); !errors.Is(err, ErrOffline) {
		t.Error(err)
	}
}

// A damaged download is not kept.
func TestKeepDamaged(t *testing.T) {
	h := start(t)
	repository := h.Add("tiny/model", files())
	root := t.TempDir()
	f := open(t, client(h, Options{Cache: root, Keep: true}), "hf.co/tiny/model")
	repository.Replace("model-2.safetensors", hubtest.Bytes(random(9, 300_001)), true)
	if _, err := f.Open("model-2.safetensors"); !errors.Is(err, ErrChecksum) {
		t.Error(err)
	}
	blobs, _ := filepath.Glob(filepath.Join(root, "models--tiny--model", "blobs", "*"))
	for _, b := range blobs {
		if info, _ := os.Stat(b); !strings.HasSuffix(b, ".incomplete") || info.Size() != 0 {
			t.Errorf("%s with %d bytes stays", b, info.Size())
		}
	}
}

// A beginning that is none, such as space that another program reserved, is dropped and the file fetched as a whole.
func TestKeepWrongBeginning(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	root := t.TempDir()
	partial := filepath.Join(root, "models--tiny--model", "blobs", sum(few()["model-1.safetensors"])+".incomplete")
	if err := os.MkdirAll(filepath.Dir(partial), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1000, 400_000, 500_000} {
		if err := os.WriteFile(partial, make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		opts := Options{Cache: root, Keep: true, Stall: time.Minute}
		expect(t, "wrong beginning", readAll(t, client(h, opts), "hf.co/tiny/model"), "")
		if err := os.Remove(strings.TrimSuffix(partial, ".incomplete")); err != nil {
			t.Fatal(err)
		}
	}
}

// cached returns the cache of a repository that was downloaded, and the paths of its blobs by file.
func cached(t *testing.T, h *hubtest.Hub) (root string, blobs map[string]string) {
	t.Helper()
	root = t.TempDir()
	f := open(t, client(h, Options{Cache: root, Keep: true, Stall: time.Minute}), "hf.co/tiny/model")
	blobs = map[string]string{}
	for _, name := range f.names {
		file, err := f.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		if blobs[name], err = filepath.EvalSymlinks(f.cache.snapshot(name)); err != nil {
			t.Fatal(err)
		}
	}
	return root, blobs
}

// tamper changes a byte of a file and keeps its size and time.
func tamper(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// Files of the cache are compared with their hashes before they are used, large and small ones, whatever was recorded.
// One that is damaged is fetched from the hub with a warning; offline and with Strict it is an error.
func TestCacheDamaged(t *testing.T) {
	for _, name := range []string{"model-1.safetensors", "config.json"} {
		h := start(t)
		h.Add("tiny/model", few())
		root, blobs := cached(t, h)
		records := t.TempDir()
		use := func(o Options) (told []string, err error) {
			o.Cache, o.Verified, o.Stall = root, records, time.Minute
			o.Notice = func(s string) { told = append(told, s) }
			return told, readAll(t, client(h, o), "hf.co/tiny/model")
		}
		if told, err := use(Options{}); err != nil || len(told) > 0 {
			t.Fatal(told, err)
		}
		tamper(t, blobs[name])
		for _, o := range []Options{{Offline: true}, {Strict: true}, {Offline: true, Verify: true}} {
			if _, err := use(o); !errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), blobs[name][:len(root)]) {
				t.Errorf("%s, %+v: %v", name, o, err)
			}
		}
		told, err := use(Options{})
		if err != nil || len(told) != 1 || !strings.HasPrefix(told[0], "warning: ") || !strings.Contains(told[0], name) {
			t.Errorf("%s: %q, %v", name, told, err)
		}
		if _, err := use(Options{Keep: true}); err != nil { // replaces it
			t.Error(err)
		}
		if told, err := use(Options{Offline: true}); err != nil || len(told) > 0 {
			t.Errorf("%s: %q, %v", name, told, err)
		}
		if err := os.Truncate(blobs[name], 3); err != nil {
			t.Fatal(err)
		}
		if _, err := use(Options{Offline: true}); !errors.Is(err, ErrChecksum) {
			t.Errorf("%s, cut: %v", name, err)
		}
	}
}

// A file that changes while it is used is found at the end.
func TestCacheChanges(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	root, blobs := cached(t, h)
	f := open(t, client(h, Options{Cache: root, Stall: time.Minute}), "hf.co/tiny/model")
	checkAll(t, f, few())
	if err := os.Chmod(blobs["config.json"], 0o600); err != nil { // which changes no byte
		t.Fatal(err)
	}
	if err := f.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	if !f.Compared("model-1.safetensors") || !f.Compared("config.json") || f.Compared("absent") {
		t.Error("Compared")
	}
	tamper(t, blobs["model-1.safetensors"])
	if err := f.Verify(t.Context()); !errors.Is(err, ErrChanged) || !f.Differs() {
		t.Error(err)
	}
}

// What was compared is remembered, so that it is not hashed again.
func TestCacheRemembered(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", files())
	root, _ := cached(t, h)
	time.Sleep(2100 * time.Millisecond) // as package verified wants it
	records := t.TempDir()
	opts := Options{Cache: root, Verified: records, Offline: true}
	f := open(t, client(h, opts), "hf.co/tiny/model")
	checkAll(t, f, files())
	if err := f.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(records)
	if len(entries) != 1 { // smaller files are hashed each time
		t.Errorf("%d records", len(entries))
	}
	f = open(t, client(h, opts), "hf.co/tiny/model")
	file := f.files["model-1.safetensors"]
	path := f.cache.snapshot("model-1.safetensors")
	info, err := os.Stat(path)
	if err != nil || !f.c.verified().Has(info, path, file.etag) {
		t.Error("it is not remembered", err)
	}
	checkAll(t, f, files())
}

// Links of the cache: to blobs elsewhere that have the bytes of their names, and out of the cache to anything.
func TestCacheLinks(t *testing.T) {
	h := start(t)
	h.Add("tiny/model", few())
	root, blobs := cached(t, h)
	offline := Options{Cache: root, Offline: true}
	link := open(t, client(h, offline), "hf.co/tiny/model").cache.snapshot("README.md")
	elsewhere := filepath.Join(t.TempDir(), filepath.Base(blobs["README.md"]))
	b, err := os.ReadFile(blobs["README.md"])
	if err != nil {
		t.Fatal(err)
	}
	relink := func(to string, content []byte) {
		t.Helper()
		_ = os.WriteFile(to, content, 0o644)
		_ = os.Remove(link)
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	relink(elsewhere, b)
	expect(t, "a blob elsewhere", readAll(t, client(h, offline), "hf.co/tiny/model"), "")
	relink(elsewhere, []byte("# A mode!"))
	expect(t, "other bytes", readAll(t, client(h, offline), "hf.co/tiny/model"), ErrChecksum.Error())
	secret := filepath.Join(t.TempDir(), "passwd")
	relink(secret, b)
	expect(t, "out of the cache", readAll(t, client(h, offline), "hf.co/tiny/model"), "leads out of the cache")
	expect(t, "with the right bytes", readAll(t, client(h, Options{Cache: root}), "hf.co/tiny/model"), "")
	relink(t.TempDir(), nil)
	expect(t, "a folder", readAll(t, client(h, offline), "hf.co/tiny/model"), "is not a file")
}
