package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/opencontainers/go-digest"
)

// repair decides how to continue after a failed exchange. If it returns nil, the next step runs immediately. Otherwise
// it returns the error to report, and the caller's backoff decides whether to try again.
func (u *upload) repair(err error) error {
	var status *remote.StatusError
	answered := errors.As(err, &status) && !errors.Is(err, remote.ErrInterrupted)
	switch {
	case !answered || remote.Temporary(err):
		// After a delay, ask for the offset. A monolithic upload starts over.
		if u.location != nil {
			u.needsStatus = true
			if u.monolithic() {
				u.reset()
			}
		}
		return err
	case errors.Is(err, errStatusRefused), status.Status == http.StatusGone, status.Code == "BLOB_UPLOAD_UNKNOWN",
		status.Status == http.StatusNotFound && u.location != nil:
		// The session is lost: open a new one. The registry may have closed it because the blob is complete.
		u.needsHead = u.offset > 0
		u.reset()
		return nil
	case status.Status == http.StatusRequestedRangeNotSatisfiable:
		// The chunk does not start at the registry's offset, which the response should hold.
		u.needsStatus = true
		from, _ := url.Parse(status.URL)
		if at, ok := u.push.r.UploadLocation(status.Header, from); ok {
			if n, ok := rangeEnd(status.Header); ok && n <= u.blob.Size {
				u.location, u.offset, u.needsStatus = at, n, false
			}
		}
		return nil
	case status.Status == http.StatusRequestEntityTooLarge:
		// Chunks are too large: halve them.
		n := min(u.push.chunkSize.Load(), u.blob.Size) / 2
		if n < max(u.chunkMin, minChunk) || u.monolithic() {
			return fmt.Errorf("the registry rejects a request body this large: %w", err)
		}
		u.push.chunkSize.Store(n)
		u.needsStatus = true
		return nil
	case status.Method == http.MethodPatch &&
		(status.Status == http.StatusMethodNotAllowed || status.Status == http.StatusNotImplemented):
		// The registry does not support chunks: send all blobs in single requests from now on.
		u.push.noChunks.Store(true)
		if u.offset > 0 {
			u.reset()
		}
		return nil
	case status.Method == http.MethodPut && status.Code == "DIGEST_INVALID":
		// The registry received other bytes. If the stored blob is intact, upload it once more.
		if err := u.rehash(); err != nil {
			return err
		}
		if u.restarted {
			return fmt.Errorf("%w: the registry computed another digest twice, but the stored blob is intact: %w",
				remote.ErrDigest, err)
		}
		u.restarted = true
		u.reset()
		return nil
	case status.Status == http.StatusBadRequest && u.location != nil && status.Method != http.MethodPost:
		switch status.Code {
		case "", "BLOB_UPLOAD_INVALID", "SIZE_INVALID", "RANGE_INVALID": // the offset may be wrong
			u.needsStatus = true
			return nil
		}
	}
	return err
}

// rehash verifies this machine's copy of the blob, after the registry reported a digest mismatch.
func (u *upload) rehash() error {
	if u.blob.data != nil || u.copied != nil || u.piece != nil {
		return nil // its digest was computed from these bytes, or while they passed
	}
	f, err := openFile(u.push.s, u.blob)
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := digest.SHA256.FromReader(f)
	if err != nil {
		return err
	}
	if got != u.blob.Digest {
		return fmt.Errorf("the stored blob has digest %s: %w", got, manifest.ErrCorrupt)
	}
	return nil
}

// reset forgets the session: the next step opens a new one.
func (u *upload) reset() {
	u.location, u.offset, u.needsStatus = nil, 0, false
}

// errStatusRefused means that the registry does not report a session's offset. Distribution 2.8 refuses after a partial
// chunk: the offset that it signed into the upload URL no longer matches the size of its file ("upload resumed at wrong
// offset").
var errStatusRefused = errors.New("the registry does not report the upload's offset")
