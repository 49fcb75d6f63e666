package hubtest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// serveHome serves the endpoint: the API, and requests for files.
func (h *Hub) serveHome(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	switch {
	case path == "api/models":
		h.serveSearch(w, r)
	case strings.HasPrefix(path, "api/v1/models/"):
		h.serveModelScope(w, r, strings.TrimPrefix(path, "api/v1/models/"))
	case strings.HasPrefix(path, "api/models/"):
		h.serveAPI(w, r, strings.TrimPrefix(path, "api/models/"))
	default:
		h.serveFile(w, r, path)
	}
}

// fail answers with a status as the hub does: a code and a message in headers.
func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", message)
	w.WriteHeader(status)
}

// open returns a repository that the request may read, or answers with an error.
func (h *Hub) open(w http.ResponseWriter, r *http.Request, name string) *Repository {
	h.mu.Lock()
	repository := h.repositories[name]
	token := h.Token
	h.mu.Unlock()
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case repository == nil && given == "": // the hub does not say whether there is a private one
		fail(w, http.StatusUnauthorized, "RepoNotFound", "Repository not found")
		return nil
	case repository == nil:
		fail(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
		return nil
	}
	return h.gate(w, r, repository, token, given)
}

// openAt is open, with the repository's files at a revision and its commit.
func (h *Hub) openAt(w http.ResponseWriter, r *http.Request, name, revision string) (
	repository *Repository, files map[string]*published, commit string,
) {
	repository = h.open(w, r, name)
	if repository == nil {
		return nil, nil, ""
	}
	if files, commit = repository.at(revision); files == nil {
		fail(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+revision)
		return nil, nil, ""
	}
	return repository, files, commit
}

func (h *Hub) gate(w http.ResponseWriter, r *http.Request, repository *Repository, token, given string) *Repository {
	// Everybody may read what a gated repository consists of, but not its files.
	if !repository.restricted() || strings.HasPrefix(r.URL.Path, "/api/") || given == token && token != "" {
		return repository
	}
	status := http.StatusForbidden
	if given == "" {
		status = http.StatusUnauthorized
	}
	fail(w, status, "GatedRepo", "Access to model "+repository.Name+" is restricted. You must be authenticated.")
	return nil
}

// serveAPI serves /api/models/ORG/REPO[/revision/REVISION] and /api/models/ORG/REPO/tree/REVISION.
func (h *Hub) serveAPI(w http.ResponseWriter, r *http.Request, path string) {
	name, what, revision := path, "revision", "main"
	for _, verb := range []string{"revision", "tree"} {
		if before, after, ok := strings.Cut(path, "/"+verb+"/"); ok {
			name, what, revision = before, verb, after
		}
	}
	revision, _ = url.PathUnescape(revision)
	repository, files, commit := h.openAt(w, r, name, revision)
	if repository == nil {
		return
	}
	if what == "tree" {
		h.serveTree(w, r, files)
		return
	}
	siblings := []any{}
	for _, p := range sorted(files) {
		siblings = append(siblings, map[string]any{"rfilename": p})
	}
	var gated any = false
	if repository.restricted() {
		gated = "auto"
	}
	writeJSON(w, map[string]any{
		"_id": "1", "id": name, "modelId": name, "sha": commit, "private": false, "gated": gated, "siblings": siblings,
		"tags": []string{"safetensors"}, "downloads": 1, "likes": 0,
	})
}

// serveTree serves a page of a commit's files and folders.
func (h *Hub) serveTree(w http.ResponseWriter, r *http.Request, files map[string]*published) {
	names, seen := sorted(files), map[string]bool{}
	entries := []map[string]any{}
	for _, p := range names {
		if dir, _, nested := strings.Cut(p, "/"); nested && !seen[dir] {
			seen[dir] = true
			zero := strings.Repeat("0", 40)
			entries = append(entries, map[string]any{"type": "directory", "oid": zero, "size": 0, "path": dir})
		}
		f := files[p]
		e := map[string]any{"type": "file", "oid": f.oid, "size": f.Size(), "path": p}
		if f.lfs {
			e["lfs"] = map[string]any{"oid": f.sum, "size": f.Size(), "pointerSize": 134}
		}
		entries = append(entries, e)
	}
	size := h.PageSize
	if size == 0 {
		size = 1000
	}
	at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	at = min(max(at, 0), len(entries))
	end := min(at+size, len(entries))
	if end < len(entries) {
		q := r.URL.Query()
		q.Set("cursor", strconv.Itoa(end))
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, h.URL(), r.URL.EscapedPath(), q.Encode()))
	}
	writeJSON(w, entries[at:end])
}

// serveFile serves /ORG/REPO/resolve/REVISION/PATH: small files, and redirects to signed addresses of large ones.
func (h *Hub) serveFile(w http.ResponseWriter, r *http.Request, path string) {
	name, rest, ok := strings.Cut(path, "/resolve/")
	revision, file, okFile := strings.Cut(rest, "/")
	if !ok || !okFile {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	revision, _ = url.PathUnescape(revision)
	file, _ = url.PathUnescape(file)
	if h.overLimit(w, file) {
		return
	}
	repository, files, commit := h.openAt(w, r, name, revision)
	if repository == nil {
		return
	}
	w.Header().Set("X-Repo-Commit", commit)
	f := files[file]
	if f == nil {
		fail(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	if !f.lfs {
		w.Header().Set("ETag", `"`+f.oid+`"`)
		h.serveContent(w, r, f)
		return
	}
	target := "/repos/" + name + "/" + commit + "/" + file
	h.mu.Lock()
	valid := h.Signed
	h.mu.Unlock()
	if valid == 0 {
		valid = time.Hour
	}
	w.Header().Set("X-Linked-Etag", `"`+f.sum+`"`)
	w.Header().Set("X-Linked-Size", strconv.FormatInt(f.Size(), 10))
	w.Header().Set("Location", h.CDN()+(&url.URL{Path: target}).EscapedPath()+"?"+h.sign(target, time.Now().Add(valid)))
	w.WriteHeader(http.StatusFound)
}

// overLimit counts a request for a file, and answers with 429 above the limit.
func (h *Hub) overLimit(w http.ResponseWriter, file string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resolved[file]++
	if h.Limit == 0 {
		return false
	}
	if h.Limit--; h.Limit > 0 {
		return false
	}
	if h.Limit = 0; h.Wait != "" {
		w.Header().Set("Retry-After", h.Wait)
	} else {
		w.Header().Set("RateLimit", `"resolvers";r=0;t=7`)
	}
	w.WriteHeader(http.StatusTooManyRequests)
	return true
}

// serveCDN serves signed addresses.
func (h *Hub) serveCDN(w http.ResponseWriter, r *http.Request) {
	expires, err := strconv.ParseInt(r.URL.Query().Get("X-Expires"), 10, 64)
	until := time.UnixMilli(expires)
	if err != nil || r.URL.RawQuery != h.sign(r.URL.Path, until) || time.Now().After(until) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	rest := strings.TrimPrefix(r.URL.Path, "/repos/")
	parts := strings.SplitN(rest, "/", 4)
	h.mu.Lock()
	repository := h.repositories[parts[0]+"/"+parts[1]]
	h.mu.Unlock()
	files, _ := repository.at(parts[2])
	f := files[parts[3]]
	w.Header().Set("ETag", `"cdn-`+f.sum[:16]+`"`)
	h.serveContent(w, r, f)
}

// serveContent serves a file or a range of it.
func (h *Hub) serveContent(w http.ResponseWriter, r *http.Request, f *published) {
	w.Header().Set("Accept-Ranges", "bytes")
	w.Header().Set("Content-Type", "application/octet-stream")
	if on, ok := f.Content.(local); ok {
		if file, err := os.Open(on.path); err == nil {
			defer file.Close()
			http.ServeContent(w, r, "", time.Time{}, file)
			return
		}
	}
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(f, 0, f.Size()))
}

// serveModelScope serves /api/v1/models/ORG/REPO/repo and .../repo/files.
func (h *Hub) serveModelScope(w http.ResponseWriter, r *http.Request, path string) {
	name, list := strings.CutSuffix(path, "/repo/files")
	if !list {
		name = strings.TrimSuffix(path, "/repo")
	}
	h.mu.Lock()
	repository := h.repositories[name]
	h.mu.Unlock()
	refuse := func(message string) {
		w.WriteHeader(http.StatusNotFound)
		writeJSON(w, map[string]any{"Code": 10010205001, "Success": false, "Message": message})
	}
	if repository == nil {
		refuse("Record not found")
		return
	}
	files, commit := repository.at(r.URL.Query().Get("Revision"))
	if files == nil {
		refuse("Revision not found")
		return
	}
	if !list {
		f := files[r.URL.Query().Get("FilePath")]
		if f == nil {
			refuse("File not found")
			return
		}
		h.serveContent(w, r, f)
		return
	}
	entries := []any{}
	for _, p := range sorted(files) {
		f := files[p]
		sum := f.sum
		if sum == "" {
			sum = sumOf(f)
		}
		entries = append(entries, map[string]any{
			"Name": p[strings.LastIndexByte(p, '/')+1:], "Path": p, "Size": f.Size(), "Sha256": sum, "Type": "blob",
			"Revision": commit, "IsLFS": f.lfs,
		})
	}
	data := map[string]any{"Files": entries}
	writeJSON(w, map[string]any{"Code": 200, "Success": true, "Message": "success", "Data": data})
}

// serveSearch serves the list of models whose names contain a text.
func (h *Hub) serveSearch(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	repositories := maps.Clone(h.repositories)
	h.mu.Unlock()
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	found := []any{}
	for _, name := range sorted(repositories) {
		repository := repositories[name]
		text := strings.ToLower(r.URL.Query().Get("search"))
		if !strings.Contains(strings.ToLower(name), text) || limit > 0 && len(found) == limit {
			continue
		}
		files, _ := repository.at("main")
		m := map[string]any{"_id": name, "id": name, "downloads": 1000, "gated": false}
		if repository.restricted() {
			m["gated"] = "manual"
		}
		if config := files["config.json"]; config != nil {
			var c map[string]any
			_ = json.NewDecoder(io.NewSectionReader(config, 0, config.Size())).Decode(&c)
			m["config"] = c
		}
		if repository.counts() != nil {
			m["safetensors"] = map[string]any{"parameters": repository.counts()}
		}
		found = append(found, m)
	}
	writeJSON(w, found)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
