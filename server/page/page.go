// Package page serves the web page: chat with a model, the models of the store, and live statistics.
//
// Contract:
//   - The files are plain HTML, CSS and JavaScript modules, without a build step. They refer only to each other. The
//     content security policy forbids other origins, inline scripts and styles, and markup from strings.
//   - The files are not secret and need no API key. Their requests to the API do.
//   - Clients that probe for a server do not get the page: see [Wanted].
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed files
var files embed.FS

// Prefix is the path prefix of the page's files. The page itself is at /.
const Prefix = "/page/"

const index = "index.html"

// types are the files' media types. The operating system's table may lack some.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// headers are sent with all files. The policy allows the page's own scripts, attached pictures, and requests to its own
// server. Trusted types make the browser refuse to parse strings as markup, so that a model's output cannot inject any.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), microphone=(), geolocation=()",
	"Cache-Control":                "no-cache", // revalidate each time: the program may have been updated
}

// Wanted reports whether a request for / comes from a browser, which accepts text/html by name. Clients that probe for
// a server accept anything.
func Wanted(r *http.Request) bool {
	for _, list := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(list, ",") {
			kind, params, err := mime.ParseMediaType(part)
			if err != nil || kind != "text/html" {
				continue
			}
			if q, err := strconv.ParseFloat(params["q"], 64); err != nil || q > 0 {
				return true
			}
		}
	}
	return false
}

// Serves reports whether a request reads the page or one of its files.
func Serves(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return r.URL.Path == "/" && Wanted(r) || strings.HasPrefix(r.URL.Path, Prefix)
}

// Serve responds with the page, or with the file that the request names. If there is no such file, it writes nothing
// and returns false.
func Serve(w http.ResponseWriter, r *http.Request) bool {
	name := index
	if r.URL.Path != "/" {
		name = strings.TrimPrefix(r.URL.Path, Prefix)
	}
	kind, known := types[path.Ext(name)]
	if !known || !fs.ValidPath(name) || name == index && r.URL.Path != "/" {
		return false
	}
	content, err := files.ReadFile(path.Join("files", name))
	if err != nil {
		return false
	}
	h := w.Header()
	for key, value := range headers {
		h.Set(key, value)
	}
	h.Set("Content-Type", kind)
	sum := sha256.Sum256(content)
	h.Set("ETag", `"`+hex.EncodeToString(sum[:16])+`"`)
	if name == index {
		h.Add("Vary", "Accept")
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	return true
}
