package shards

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
)

// repository is the name of the image in paths of the distribution protocol. A handler has only one image.
const repository = "/v2/model/"

// Handler returns a handler that serves the manifest and the blobs of an image of a store, and nothing else.
func Handler(s *store.Store, image digest.Digest) (http.Handler, error) {
	b, err := s.ReadBlob(image, manifest.MaxManifestSize)
	if err != nil {
		return nil, err
	}
	blobs, err := manifest.Blobs(b)
	if err != nil {
		return nil, err
	}
	h := &handler{store: s, image: image, manifest: b, blobs: map[digest.Digest]*sent{}}
	for _, d := range blobs {
		h.blobs[d.Digest] = new(sent)
	}
	return h, nil
}

type handler struct {
	store    *store.Store
	image    digest.Digest
	manifest []byte
	blobs    map[digest.Digest]*sent
}

// sent is a blob of which ranges may be sent.
type sent struct {
	once sync.Once
	err  error // that it does not have its digest
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	kind, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, repository), "/")
	d := digest.Digest(name)
	blob := h.blobs[d]
	switch {
	case !strings.HasPrefix(r.URL.Path, repository):
		http.NotFound(w, r)
	case kind == "manifests" && d == h.image:
		_, _ = w.Write(h.manifest)
	case kind == "blobs" && blob != nil:
		h.send(w, r, d, blob)
	default:
		http.NotFound(w, r)
	}
}

func (h *handler) send(w http.ResponseWriter, r *http.Request, d digest.Digest, blob *sent) {
	f, err := h.store.OpenBlob(d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer f.Close()
	if r.Header.Get("Range") != "" { // the worker checks a whole blob by itself
		blob.once.Do(func() {
			sum := sha256.New()
			if _, blob.err = io.Copy(sum, f); blob.err == nil && digest.NewDigest(digest.SHA256, sum) != d {
				blob.err = fmt.Errorf("blob %s of rank 0 is damaged; run `ingot fsck --repair` there", d)
			}
		})
		if blob.err != nil {
			http.Error(w, blob.err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, f)
}
