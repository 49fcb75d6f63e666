package hub

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
