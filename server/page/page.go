// Package page is the page that browsers get: chat with a model, what is on the machine, what is going on.
//
// Contract:
//   - The files are as they were written: plain HTML, CSS and JavaScript modules, without a build step. They name each other and nothing
//     else; the page's policy forbids any other origin, inline scripts and styles, and strings that become markup.
//   - Nothing in them is secret, so they need no API key; what they ask the server for does.
//   - The program that asks with no wish for HTML, as clients do that look whether a server is there, is no browser: see [Wanted].
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

// Prefix is where the page's parts are; the page itself is at /.
const Prefix = "/page/"

const index = "index.html"

// types are those of the files, which the system's own table may not know.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// headers of all files. The policy lets the page run its own scripts, show pictures that the user attached, and talk to its own
// server. Trusted types make the browser refuse to read markup from strings, which is how a model's words could become more than words.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "same-origin",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), microphone=(), geolocation=()",
	"Cache-Control":                "no-cache", // ask each time whether it is still the same: the program may be another one
}

// Wanted tells whether a request for / is a browser's, which accepts HTML by name. Clients that only want to know whether a server is there
// accept anything.
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

// Serves tells whether a request is for the page or a part of it, and reads only.
func Serves(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return r.URL.Path == "/" && Wanted(r) || strings.HasPrefix(r.URL.Path, Prefix)
}

// Serve answers with the page, or with the part of it that a request names. It reports whether there is such a file; if not, nothing is written.
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
