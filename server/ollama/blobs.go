package ollama

import (
	"errors"
	"io"
	"net/http"

	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/server/wire"
	"github.com/opencontainers/go-digest"
)

// blobPath is the prefix of the route that receives files for /api/create.
const blobPath = "/api/blobs/"

// headBlob is HEAD /api/blobs/{digest}: it reports whether a file exists and need not be uploaded.
func (s *api) headBlob(w http.ResponseWriter, r *http.Request) error {
	d, err := blobDigest(r)
	if err != nil {
		return err
	}
	if !ingest.HasUpload(s.opts.Store, d) {
		return wire.Errorf(http.StatusNotFound, "blob %q not found", d)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// putBlob is POST /api/blobs/{digest}: it uploads a file for a later /api/create.
func (s *api) putBlob(w http.ResponseWriter, r *http.Request) error {
	d, err := blobDigest(r)
	if err != nil {
		return err
	}
	select {
	case s.uploadSlots <- struct{}{}:
		defer func() { <-s.uploadSlots }()
	default:
		return wire.Errorf(http.StatusServiceUnavailable,
			"%d files are being uploaded, which is the limit; upload this one again later", cap(s.uploadSlots))
	}
	body := wire.Upload(w, r, s.core.BodyTimeout())
	if ingest.HasUpload(s.opts.Store, d) {
		// Read the body: a client that writes all of it before it reads would see a reset connection.
		if _, err := io.Copy(io.Discard, body); err != nil {
			return bodyError(err)
		}
		w.WriteHeader(http.StatusOK)
		return nil
	}
	opts := ingest.UploadOptions{Size: r.ContentLength, KeepFree: s.opts.KeepFree}
	err = ingest.PutUpload(r.Context(), s.opts.Store, d, body, opts)
	var mismatch *ingest.MismatchError
	if errors.As(err, &mismatch) {
		return wire.BadRequest("digest mismatch, expected %q, got %q", mismatch.Want, mismatch.Got)
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
		return "", wire.BadRequest("%q is not sha256: and 64 lower-case hexadecimal digits", wire.Clip(string(d)))
	}
	return d, nil
}

// bodyError turns the early end of a body into a client error.
func bodyError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return wire.BadRequest("the file is incomplete: the connection ended early")
	}
	return err
}
