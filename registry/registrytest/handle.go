package registrytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func routeOf(r *http.Request) (about Route, repo, ref string) {
	path, ok := strings.CutPrefix(r.URL.Path, "/v2/")
	if !ok {
		return OtherRoute, "", ""
	}
	if path == "" {
		return PingRoute, "", ""
	}
	for _, kind := range []struct {
		infix string
		route Route
	}{{"/tags/list", TagsRoute}, {"/blobs/uploads/", UploadRoute}, {"/blobs/", BlobRoute}, {"/manifests/", ManifestRoute},
		{"/referrers/", ReferrersRoute}} {
		if i := strings.LastIndex(path, kind.infix); i > 0 {
			repo, ref = path[:i], path[i+len(kind.infix):]
			if kind.route == UploadRoute && ref == "" {
				return BeginRoute, repo, ""
			}
			return kind.route, repo, ref
		}
	}
	return OtherRoute, "", ""
}

// Handle responds as the specification demands.
func (x *Exchange) Handle() {
	switch x.Route {
	case PingRoute:
		x.W.WriteHeader(http.StatusOK)
	case BlobRoute:
		x.handleBlob()
	case BeginRoute:
		x.handleBegin()
	case UploadRoute:
		x.handleUpload()
	case ManifestRoute:
		x.handleManifest()
	case ReferrersRoute:
		x.handleReferrers()
	case TagsRoute:
		x.handleTags()
	default:
		x.Fail(http.StatusNotFound, "NOT_FOUND")
	}
}

func (x *Exchange) Fail(status int, code string) {
	x.W.Header().Set("Content-Type", "application/json")
	x.W.WriteHeader(status)
	fmt.Fprintf(x.W, `{"errors":[{"code":%q,"message":"said by a test"}]}`, code)
}

func (x *Exchange) handleBlob() {
	b := x.Blob(x.Repo, digest.Digest(x.Ref))
	if b == nil {
		x.Fail(http.StatusNotFound, "BLOB_UNKNOWN")
		return
	}
	x.W.Header().Set("Content-Type", "application/octet-stream")
	x.W.Header().Set("Docker-Content-Digest", x.Ref)
	http.ServeContent(counted{x.W, x.Peer}, x.R, "", time.Time{}, bytes.NewReader(b))
}

// counted counts the bytes of blobs that are sent.
type counted struct {
	http.ResponseWriter
	p *Peer
}

func (w counted) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.p.Mu.Lock()
	defer w.p.Mu.Unlock()
	w.p.served += int64(n)
	return n, err
}

func (x *Exchange) handleBegin() {
	if x.R.Method != http.MethodPost {
		x.Fail(http.StatusMethodNotAllowed, "UNSUPPORTED")
		return
	}
	x.Mu.Lock()
	defer x.Mu.Unlock()
	q := x.R.URL.Query()
	if d := digest.Digest(q.Get("mount")); d != "" {
		for name, repo := range x.Repos {
			b := repo.Blobs[d]
			if from := q.Get("from"); b != nil && (from == name || from == "" && x.AnonymousMount) {
				x.InRepo(x.Repo).Blobs[d] = b
				x.W.Header().Set("Location", "/v2/"+x.Repo+"/blobs/"+string(d))
				x.W.WriteHeader(http.StatusCreated)
				return
			}
		}
	}
	x.sessions++
	id := fmt.Sprint("upload-", x.sessions)
	x.Uploads[id] = &peerUpload{repo: x.Repo, Bytes: []byte{}}
	x.Ref = id
	if x.ChunkMin > 0 {
		x.W.Header().Set("OCI-Chunk-Min-Length", strconv.FormatInt(x.ChunkMin, 10))
	}
	x.progress(x.Uploads[id])
	x.W.WriteHeader(http.StatusAccepted)
}

// progress sets the Location and Range of an upload session. The Location changes with each chunk. The caller must hold
// x.mu.
func (x *Exchange) progress(u *peerUpload) {
	x.W.Header().Set("Location", fmt.Sprintf("/v2/%s/blobs/uploads/%s?state=%d", u.repo, x.Ref, len(u.Bytes)))
	x.W.Header().Set("Range", fmt.Sprintf("0-%d", max(len(u.Bytes)-1, 0)))
}

func (x *Exchange) handleUpload() {
	x.Mu.Lock()
	u := x.Uploads[x.Ref]
	x.Mu.Unlock()
	if u == nil || u.repo != x.Repo {
		x.Fail(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN")
		return
	}
	u.busy.Lock()
	defer u.busy.Unlock()
	switch x.R.Method {
	case http.MethodGet:
		x.Mu.Lock()
		defer x.Mu.Unlock()
		x.progress(u)
		x.W.WriteHeader(http.StatusNoContent)
	case http.MethodDelete:
		x.Mu.Lock()
		defer x.Mu.Unlock()
		delete(x.Uploads, x.Ref)
		x.W.WriteHeader(http.StatusNoContent)
	case http.MethodPatch:
		if x.takeChunk(u, true) {
			x.Mu.Lock()
			defer x.Mu.Unlock()
			x.progress(u)
			x.W.WriteHeader(http.StatusAccepted)
		}
	case http.MethodPut:
		if x.takeChunk(u, false) {
			x.commit(u)
		}
	default:
		x.Fail(http.StatusMethodNotAllowed, "UNSUPPORTED")
	}
}

// takeChunk appends the body to an upload, or responds with an error and returns false.
func (x *Exchange) takeChunk(u *peerUpload, patch bool) bool {
	x.Mu.Lock()
	start, length := len(u.Bytes), x.R.ContentLength
	if state := x.R.URL.Query().Get("state"); state != strconv.Itoa(start) {
		x.Mu.Unlock()
		x.Fail(http.StatusBadRequest, "BLOB_UPLOAD_INVALID")
		return false
	}
	given := x.R.Header.Get("Content-Range")
	if want := fmt.Sprintf("%d-%d", start, int64(start)+length-1); length > 0 && given != want && (patch || given != "") {
		x.progress(u)
		x.Mu.Unlock()
		x.Fail(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID")
		return false
	}
	if patch && (length <= 0 || u.short) {
		x.Mu.Unlock()
		x.Fail(http.StatusBadRequest, "SIZE_INVALID")
		return false
	}
	u.short = u.short || patch && length < x.ChunkMin
	x.Mu.Unlock()
	buf := make([]byte, 32<<10)
	for {
		n, err := x.R.Body.Read(buf)
		x.Mu.Lock()
		u.Bytes = append(u.Bytes, buf[:n]...)
		x.Received += int64(n)
		x.Mu.Unlock()
		if err == io.EOF {
			return true
		}
		if err != nil {
			panic(http.ErrAbortHandler) // nobody to respond to
		}
	}
}

func (x *Exchange) commit(u *peerUpload) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	want := digest.Digest(x.R.URL.Query().Get("digest"))
	if digest.FromBytes(u.Bytes) != want {
		delete(x.Uploads, x.Ref)
		x.Fail(http.StatusBadRequest, "DIGEST_INVALID")
		return
	}
	delete(x.Uploads, x.Ref)
	x.InRepo(x.Repo).Blobs[want] = u.Bytes
	x.W.Header().Set("Location", "/v2/"+x.Repo+"/blobs/"+string(want))
	x.W.Header().Set("Docker-Content-Digest", string(want))
	x.W.WriteHeader(http.StatusCreated)
}

func (x *Exchange) handleManifest() {
	if x.R.Method == http.MethodPut {
		x.putPushed()
		return
	}
	if x.R.Method == http.MethodDelete {
		x.handleDelete()
		return
	}
	x.Mu.Lock()
	m, ok := x.InRepo(x.Repo).Manifests[x.Ref]
	x.Mu.Unlock()
	if !ok {
		x.Fail(http.StatusNotFound, "MANIFEST_UNKNOWN")
		return
	}
	x.W.Header().Set("Content-Type", m.MediaType)
	x.W.Header().Set("Content-Length", strconv.Itoa(len(m.Bytes)))
	x.W.Header().Set("Docker-Content-Digest", string(digest.FromBytes(m.Bytes)))
	x.W.WriteHeader(http.StatusOK)
	if x.R.Method == http.MethodGet {
		x.W.Write(m.Bytes)
	}
}

// handleDelete removes a tag, or a manifest with its tags.
func (x *Exchange) handleDelete() {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	manifests := x.InRepo(x.Repo).Manifests
	m, ok := manifests[x.Ref]
	if !ok {
		x.Fail(http.StatusNotFound, "MANIFEST_UNKNOWN")
		return
	}
	delete(manifests, x.Ref)
	if strings.Contains(x.Ref, ":") {
		maps.DeleteFunc(manifests, func(_ string, other PeerManifest) bool { return bytes.Equal(other.Bytes, m.Bytes) })
	}
	x.W.WriteHeader(http.StatusAccepted)
}

// handleTags lists the tags in lexical order, as pages if n is given.
func (x *Exchange) handleTags() {
	x.Mu.Lock()
	_, known := x.Repos[x.Repo]
	tags := []string{}
	for ref := range x.InRepo(x.Repo).Manifests {
		if !strings.Contains(ref, ":") {
			tags = append(tags, ref)
		}
	}
	x.Mu.Unlock()
	if !known {
		x.Fail(http.StatusNotFound, "NAME_UNKNOWN")
		return
	}
	slices.Sort(tags)
	if last := x.R.URL.Query().Get("last"); last != "" {
		at, found := slices.BinarySearch(tags, last)
		if found {
			at++
		}
		tags = tags[at:]
	}
	if n, err := strconv.Atoi(x.R.URL.Query().Get("n")); err == nil && n < len(tags) {
		tags = tags[:n]
		if n > 0 {
			x.W.Header().Set("Link", fmt.Sprintf(`</v2/%s/tags/list?n=%d&last=%s>; rel="next"`, x.Repo, n, tags[n-1]))
		}
	}
	x.W.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(x.W).Encode(map[string]any{"name": x.Repo, "tags": tags})
}

func (x *Exchange) putPushed() {
	b, err := io.ReadAll(x.R.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var doc ocispec.Manifest
	blobs, err := manifest.Blobs(b)
	if err != nil || json.Unmarshal(b, &doc) != nil {
		x.Fail(http.StatusBadRequest, "MANIFEST_INVALID")
		return
	}
	for _, d := range blobs {
		if x.Blob(x.Repo, d.Digest) == nil {
			x.Fail(http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN")
			return
		}
	}
	tag := x.Ref
	if strings.Contains(tag, ":") {
		tag = ""
	}
	d := x.PutManifest(x.Repo, tag, x.R.Header.Get("Content-Type"), b)
	if doc.Subject != nil && !x.NoReferrers {
		x.W.Header().Set("OCI-Subject", string(doc.Subject.Digest))
	}
	x.W.Header().Set("Location", "/v2/"+x.Repo+"/manifests/"+string(d))
	x.W.Header().Set("Docker-Content-Digest", string(d))
	x.W.WriteHeader(http.StatusCreated)
}

func (x *Exchange) handleReferrers() {
	if x.NoReferrers {
		x.Fail(http.StatusNotFound, "NOT_FOUND")
		return
	}
	idx := ocispec.Index{MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{}}
	idx.SchemaVersion = 2
	x.Mu.Lock()
	for ref, m := range x.InRepo(x.Repo).Manifests {
		var doc ocispec.Manifest
		if !strings.Contains(ref, ":") || json.Unmarshal(m.Bytes, &doc) != nil || doc.Subject == nil ||
			string(doc.Subject.Digest) != x.Ref {
			continue
		}
		kind := doc.ArtifactType
		if kind == "" {
			kind = doc.Config.MediaType
		}
		idx.Manifests = append(idx.Manifests, ocispec.Descriptor{MediaType: m.MediaType, ArtifactType: kind,
			Digest: digest.Digest(ref), Size: int64(len(m.Bytes)), Annotations: doc.Annotations})
	}
	x.Mu.Unlock()
	if want := x.R.URL.Query().Get("artifactType"); want != "" {
		idx.Manifests = slices.DeleteFunc(idx.Manifests, func(d ocispec.Descriptor) bool { return d.ArtifactType != want })
		x.W.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	slices.SortFunc(idx.Manifests,
		func(a, b ocispec.Descriptor) int { return strings.Compare(string(a.Digest), string(b.Digest)) })
	x.W.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	_ = json.NewEncoder(x.W).Encode(idx)
}

func (x *Exchange) SendProgress(status int) {
	x.Mu.Lock()
	defer x.Mu.Unlock()
	x.progress(x.Uploads[x.Ref])
	x.W.WriteHeader(status)
}
