package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
)

// blobPath is where files for /api/create are sent.
const blobPath = "/api/blobs/"

// uploads tells whether a request's body is a file, which has limits of its own.
func uploads(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, blobPath)
}

// headBlob is HEAD /api/blobs/{digest}: whether a file need not be sent.
func (s *Server) headBlob(w http.ResponseWriter, r *http.Request) error {
	d, err := blobDigest(r)
	if err != nil {
		return err
	}
	if !s.opts.Store.HasUpload(d) {
		return failf(http.StatusNotFound, "there is no file %s", d)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// putBlob is POST /api/blobs/{digest}: a file for a later /api/create.
func (s *Server) putBlob(w http.ResponseWriter, r *http.Request) error {
	d, err := blobDigest(r)
	if err != nil {
		return err
	}
	select {
	case s.sending <- struct{}{}:
		defer func() { <-s.sending }()
	default:
		return failf(http.StatusServiceUnavailable,
			"%d files are being uploaded, and the server takes no more at once: send this one again later", cap(s.sending))
	}
	body := &steadyBody{w: w, r: r, patience: s.times.body}
	if s.opts.Store.HasUpload(d) {
		if _, err := io.Copy(io.Discard, body); err != nil { // who writes before reading would see a connection that was cut
			return bodyError(err)
		}
		w.WriteHeader(http.StatusOK)
		return nil
	}
	opts := manifest.UploadOptions{Size: r.ContentLength, KeepFree: s.opts.keepFree}
	err = s.opts.Store.PutUpload(r.Context(), d, body, opts)
	var mismatch *manifest.MismatchError
	if errors.As(err, &mismatch) {
		return badRequest("what came has the digest %s, not %s", mismatch.Got, mismatch.Want)
	}
	if err != nil {
		return bodyError(err)
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

func blobDigest(r *http.Request) (digest.Digest, error) {
	d := digest.Digest(r.PathValue("digest"))
	if err := d.Validate(); err != nil || d.Algorithm() != digest.SHA256 {
		return "", badRequest("%q is not sha256: and 64 lower-case hexadecimal digits", clip(string(d)))
	}
	return d, nil
}

// bodyError makes a body that ends too early the client's error.
func bodyError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return badRequest("the file did not come to its end")
	}
	return err
}

// steadyBody reads a file that may be as long as it wants, as long as it comes: [limits.UploadStep] bytes in each patience.
type steadyBody struct {
	w        http.ResponseWriter
	r        *http.Request
	patience time.Duration
	left     int // bytes until the time begins anew
}

// Read implements io.Reader.
func (b *steadyBody) Read(p []byte) (int, error) {
	if b.left <= 0 && b.r.ContentLength != 0 {
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Now().Add(b.patience)) // an answer to a test has none
		b.left = limits.UploadStep
	}
	n, err := b.r.Body.Read(p)
	b.left -= n
	return n, err
}
