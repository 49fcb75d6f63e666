package cmd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/opencontainers/go-digest"
)

// hostile is a registry that serves arbitrary manifests and blobs.
type hostile struct {
	addr  string
	mu    sync.Mutex
	types map[string]string // media type by path
	files map[string][]byte
}

func newHostile(t *testing.T) *hostile {
	h := &hostile{types: map[string]string{}, files: map[string][]byte{"/v2/": []byte("{}")}}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	h.addr = strings.TrimPrefix(s.URL, "http://")
	return h
}

func (h *hostile) put(path, mediaType string, b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.types[path], h.files[path] = mediaType, b
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	b, ok := h.files[r.URL.Path]
	mediaType := h.types[r.URL.Path]
	h.mu.Unlock()
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	if mediaType != "" && firstControl(mediaType) == "" { // a header cannot contain it, but the manifest can
		w.Header().Set("Content-Type", mediaType)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// serve puts a model of a store into the registry, with another manifest and config.
func (h *hostile) serve(t *testing.T, store *store.Store, tag string, doc, config any) {
	t.Helper()
	put := func(d digest.Digest, b []byte) {
		h.put("/v2/team/model/blobs/"+d.String(), "application/octet-stream", b)
	}
	b, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	m := doc.(map[string]any)
	if c := m["config"].(map[string]any); !strings.Contains(fmt.Sprint(c["digest"]), "\x1b") {
		c["digest"], c["size"] = digest.FromBytes(b).String(), len(b)
	}
	put(digest.FromBytes(b), b)
	for _, l := range m["layers"].([]any) {
		d := digest.Digest(l.(map[string]any)["digest"].(string))
		if blob, err := store.ReadBlob(d, 1<<30); err == nil {
			put(d, blob)
		}
	}
	if b, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	mediaType, _ := m["mediaType"].(string)
	h.put("/v2/team/model/manifests/"+tag, mediaType, b)
	h.put("/v2/team/model/manifests/"+digest.FromBytes(b).String(), mediaType, b)
}

// leaves visits the texts in a JSON value, each with a function that replaces it.
func leaves(v any, path string, set func(any), visit func(path, text string, set func(any))) {
	switch v := v.(type) {
	case string:
		visit(path, v, set)
	case []any:
		for i := range v {
			leaves(v[i], fmt.Sprintf("%s[%d]", path, i), func(x any) { v[i] = x }, visit)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			leaves(v[key], path+"."+key, func(x any) { v[key] = x }, visit)
		}
	}
}

// decoded returns a modifiable copy of a JSON value.
func decoded(t *testing.T, b []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
