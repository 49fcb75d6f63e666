package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
)

// smallBlob is the size up to which a blob is uploaded in a single request and is not resumable: restarting is cheaper
// than tracking it.
const smallBlob = 16 << 20

// minChunk is the lower limit when chunks shrink because a registry or a connection does not accept larger ones.
const minChunk = 1 << 20

// maxRepairs limits consecutive retries without a delay while the registry's offset does not advance.
const maxRepairs = 8

// upload is a state machine that pushes one blob. Each step makes one HTTP exchange, or several to open a session. The
// offset reported by the registry decides the next step, so any step may fail and be retried. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-blobs.
type upload struct {
	push    *pusher
	blob    blob
	session *session

	location    *url.URL // of the upload session; nil if no session is open
	offset      int64    // number of bytes that the registry has
	maxOffset   int64    // largest offset so far
	needsStatus bool     // the next step asks the registry for its offset
	needsHead   bool     // the next step checks whether the registry has the whole blob
	chunkMin    int64    // OCI-Chunk-Min-Length of the session

	interrupted bool // the last chunk was interrupted
	repairs     int  // since maxOffset last grew
	restarted   bool // the upload was restarted after a digest mismatch
}

// upload pushes one blob. It resumes an earlier run's upload session if the store has a record of it.
func (p *pusher) upload(ctx context.Context, b blob) error {
	u := &upload{push: p, blob: b}
	if !u.small() {
		u.session = p.session(b.Digest)
		defer u.session.close()
		if at, note := u.session.load(u.push.r); at != nil && note.Digest == b.Digest && note.Size == b.Size {
			u.location, u.chunkMin, u.needsStatus = at, note.ChunkMin, true
		}
	}
	kind, err := u.run(ctx)
	if err != nil {
		if b.name != "" {
			return fmt.Errorf("blob %s (%s): %w", b.Digest, b.name, err)
		}
		return fmt.Errorf("blob %s: %w", b.Digest, err)
	}
	u.session.remove()
	u.emit(kind, b.Size, nil)
	return nil
}

func (u *upload) emit(kind EventKind, bytes int64, err error) {
	u.push.c.emit(Event{Kind: kind, Digest: u.blob.Digest, Name: u.blob.name, Bytes: bytes, Total: u.blob.Size, Err: err})
}

// small reports whether the blob is uploaded in a single request: because of its size, or because the registry does not
// support chunks. Such an upload has no session record.
func (u *upload) small() bool {
	return u.blob.Size <= smallBlob && u.blob.Size <= u.push.chunkSize.Load() || u.monolithic()
}

// monolithic reports whether blobs must be uploaded in a single PUT.
func (u *upload) monolithic() bool { return u.push.r.host.rule.monolithic || u.push.noChunks.Load() }

// run takes steps until the registry has the blob. It returns how: [Done] or [Mounted].
func (u *upload) run(ctx context.Context) (EventKind, error) {
	a := u.push.c.attempts()
	if !u.needsStatus { // a resumed upload emits Begin once the offset is known
		u.emit(Begin, 0, nil)
	}
	for first := u.needsStatus; ; first = false {
		done, err := u.step(ctx)
		if first {
			u.emit(Begin, u.offset, nil)
		}
		if done != "" {
			return done, nil
		}
		if u.offset > u.maxOffset {
			u.maxOffset, u.repairs = u.offset, 0
			a.reset()
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		final := u.repair(err)
		if final == nil {
			if u.repairs++; u.repairs > maxRepairs {
				return "", err
			}
			continue
		}
		if temporary(final) && a.failed+1 < a.limit {
			u.emit(Retry, u.offset, final)
		}
		if err := a.backoff(ctx, final); err != nil {
			return "", err
		}
	}
}

// step takes the next step of the upload. done is the final event once the registry has the blob, else empty.
func (u *upload) step(ctx context.Context) (done EventKind, err error) {
	switch {
	case u.needsHead:
		there, err := u.push.headOnce(ctx, u.blob)
		if err != nil {
			return "", err
		}
		if u.needsHead = false; there {
			return Done, nil
		}
		return "", nil
	case u.location == nil:
		return u.open(ctx)
	case u.needsStatus:
		return "", u.status(ctx)
	case u.monolithic(), u.small() && u.offset == 0, u.offset == u.blob.Size:
		return u.put(ctx)
	}
	return "", u.patch(ctx)
}

// reset forgets the session: the next step opens a new one.
func (u *upload) reset() {
	u.location, u.offset, u.needsStatus = nil, 0, false
}

// repair decides how to continue after a failed exchange. If it returns nil, the next step runs immediately. Otherwise
// it returns the error to report, and the caller's backoff decides whether to try again.
func (u *upload) repair(err error) error {
	var status *StatusError
	answered := errors.As(err, &status) && !errors.Is(err, ErrInterrupted)
	switch {
	case !answered || temporary(err):
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
		if at, ok := u.push.r.uploadLocation(status.Header, from); ok {
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
				ErrDigest, err)
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

// rehash verifies the store's copy of the blob, after the registry reported a digest mismatch.
func (u *upload) rehash() error {
	if u.blob.data != nil {
		return nil // its digest was computed from these bytes
	}
	f, err := u.push.s.OpenBlob(u.blob.Digest)
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

// open opens an upload session, or mounts the blob from another repository, for which it returns [Mounted]. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#mounting-a-blob-from-another-repository.
func (u *upload) open(ctx context.Context) (EventKind, error) {
	if u.push.mounter != nil {
		for len(u.blob.from) > 0 && !u.push.noFrom.Load() {
			from := u.blob.from[0]
			resp, err := u.push.post(ctx, u.push.mounter, url.Values{"mount": {string(u.blob.Digest)}, "from": {from}})
			if err != nil && temporary(err) {
				return "", err
			}
			u.blob.from = u.blob.from[1:]
			switch {
			case errors.Is(err, ErrUnauthorized): // no permission to pull from the source repositories
				u.push.noFrom.Store(true)
			case err != nil:
			case resp.StatusCode == http.StatusCreated:
				u.abandon(ctx)
				return Mounted, nil
			case u.location == nil:
				_ = u.opened(resp)
			default: // a failed mount opens a session too: keep the first
				if at, ok := u.push.r.uploadLocation(resp.Header, resp.Request.URL); ok {
					u.push.cancel(ctx, at)
				}
			}
		}
		if u.location != nil {
			return "", nil
		}
	}
	// A mount without a source repository lets the registry look for the blob in all repositories (automatic content
	// discovery). Not all registries support it.
	query := url.Values{}
	if !u.push.noMount.Load() {
		query.Set("mount", string(u.blob.Digest))
	}
	resp, err := u.push.post(ctx, u.push.r, query)
	var status *StatusError
	if len(query) > 0 && errors.As(err, &status) && !temporary(err) && status.Status != http.StatusUnauthorized {
		u.push.noMount.Store(true)
		resp, err = u.push.post(ctx, u.push.r, nil)
	}
	if err != nil {
		return "", err
	}
	if resp.StatusCode == http.StatusCreated {
		return Mounted, nil
	}
	return "", u.opened(resp)
}

// opened records the session that a POST opened.
func (u *upload) opened(resp *http.Response) error {
	at, ok := u.push.r.uploadLocation(resp.Header, resp.Request.URL)
	if !ok {
		return fmt.Errorf("POST %s: the response has no usable Location", displayURL(resp.Request.URL))
	}
	u.location, u.offset, u.chunkMin = at, 0, chunkMinLength(resp.Header)
	u.save()
	return nil
}

// abandon cancels the open session, if there is one.
func (u *upload) abandon(ctx context.Context) {
	if u.location != nil {
		u.push.cancel(ctx, u.location)
		u.reset()
	}
}

// save updates the session record.
func (u *upload) save() {
	u.session.save(u.location, sessionRecord{Registry: u.push.r.origin(), Repository: u.push.dst.Host + "/" + u.push.r.path,
		Digest: u.blob.Digest, Size: u.blob.Size, Offset: u.offset, ChunkMin: u.chunkMin})
}

// patch sends the next chunk. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks.
func (u *upload) patch(ctx context.Context) error {
	n := min(max(u.push.chunkSize.Load(), u.chunkMin), u.blob.Size-u.offset)
	before := u.offset
	resp, err := u.send(ctx, http.MethodPatch, u.location, u.offset, n,
		http.StatusAccepted, http.StatusNoContent, http.StatusCreated)
	u.interrupted = err != nil
	if err != nil {
		return err
	}
	if at, ok := u.push.r.uploadLocation(resp.Header, resp.Request.URL); ok && !isBlob(at) {
		u.location = at
	} else if resp.StatusCode == http.StatusCreated {
		u.needsHead = true // without a session to continue, the blob may be complete
	}
	has, ok := rangeEnd(resp.Header)
	switch {
	case !ok:
		has = before + n
	case has > before+n:
		u.reset()
		return fmt.Errorf("%w: the registry reports %d bytes, but only %d were sent", ErrInterrupted, has, before+n)
	case has <= before:
		u.offset, u.interrupted = has, true
		return fmt.Errorf("%w: the registry kept nothing of a chunk of %d bytes", ErrInterrupted, n)
	}
	u.offset = has
	u.save()
	u.emit(Moved, u.offset, nil)
	return nil
}

// put closes the session with the blob's digest and its remaining bytes, which are all of them in a monolithic upload.
func (u *upload) put(ctx context.Context) (EventKind, error) {
	at := *u.location
	if at.RawQuery != "" {
		at.RawQuery += "&" // keep the registry's query byte for byte: it may be signed
	}
	at.RawQuery += "digest=" + url.QueryEscape(string(u.blob.Digest))
	n := u.blob.Size - u.offset
	resp, err := u.send(ctx, http.MethodPut, &at, u.offset, n,
		http.StatusCreated, http.StatusNoContent, http.StatusAccepted)
	if err != nil {
		u.needsHead = true // the registry may have committed the blob before the error
		return "", err
	}
	got := digest.Digest(resp.Header.Get("Docker-Content-Digest"))
	if got.Validate() == nil && got.Algorithm() == digest.SHA256 && got != u.blob.Digest {
		return "", fmt.Errorf("the registry stored the blob as %s: %w", got, ErrDigest)
	}
	if resp.StatusCode == http.StatusAccepted {
		u.needsHead = true
		return "", fmt.Errorf("%w: the registry accepted the blob but has not committed it", ErrInterrupted)
	}
	return Done, nil
}

// errStatusRefused means that the registry does not report a session's offset. Distribution 2.8 refuses after a partial
// chunk: the offset that it signed into the upload URL no longer matches the size of its file ("upload resumed at wrong
// offset").
var errStatusRefused = errors.New("the registry does not report the upload's offset")

// status asks the registry for the session's offset with a GET of its location.
func (u *upload) status(ctx context.Context) error {
	resp, err := u.push.exchange(ctx, u.push.r, http.MethodGet, u.location, http.StatusNoContent, http.StatusOK, http.StatusAccepted)
	if err != nil {
		var status *StatusError
		if temporary(err) || errors.As(err, &status) && status.Status == http.StatusUnauthorized {
			return err
		}
		return fmt.Errorf("%w: %w", errStatusRefused, err)
	}
	before := u.offset
	if at, ok := u.push.r.uploadLocation(resp.Header, resp.Request.URL); ok && !isBlob(at) {
		u.location = at
	}
	u.offset, _ = rangeEnd(resp.Header)
	u.needsStatus = false
	if u.offset > u.blob.Size {
		u.abandon(ctx)
		return nil
	}
	if u.interrupted && u.offset <= before { // the registry keeps only complete chunks: smaller ones lose less
		u.shrink()
	}
	u.interrupted = false
	u.save()
	u.emit(Moved, u.offset, nil)
	return nil
}

// shrink halves the chunk size unless it would fall below the minimum.
func (u *upload) shrink() {
	if n := u.push.chunkSize.Load(); n/2 >= max(u.chunkMin, minChunk) {
		u.push.chunkSize.CompareAndSwap(n, n/2)
	}
}

// send sends n bytes of the blob from offset on. It follows redirects that keep the method (307, 308) and returns the
// response with its body closed.
func (u *upload) send(ctx context.Context, method string, at *url.URL, offset, n int64,
	want ...int) (*http.Response, error) {
	for hops := 0; ; hops++ {
		redirect := func(status int) bool {
			return status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
		}
		accepted := append(want, http.StatusTemporaryRedirect, http.StatusPermanentRedirect)
		resp, err := u.sendOnce(ctx, method, at, offset, n, accepted...)
		if err != nil || !redirect(resp.StatusCode) {
			return resp, err
		}
		next, ok := u.push.r.uploadLocation(resp.Header, resp.Request.URL)
		switch {
		case !ok:
			// The Location is not quoted: it may hold a signature.
			return nil, &redirectError{displayURL(at), "nowhere", "it has no usable Location"}
		case hops == maxRedirects:
			return nil, &redirectError{displayURL(at), displayURL(next), "too many of them"}
		}
		at = next
	}
}

// sendOnce sends one request with n bytes of the blob. If n is positive, the request holds a send slot until all bytes
// are sent.
func (u *upload) sendOnce(ctx context.Context, method string, at *url.URL, offset, n int64,
	want ...int) (*http.Response, error) {
	releaseSlot := func() {}
	if n > 0 {
		select {
		case u.push.sendSlots <- struct{}{}:
			releaseSlot = sync.OnceFunc(func() { <-u.push.sendSlots })
			defer releaseSlot()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	ctx, dog := startWatchdog(ctx, n, u.push.opts.Stall)
	defer dog.stop()
	req, err := u.push.r.request(ctx, method, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		var ended atomic.Bool // net/http may keep reading the body for a while after an early response
		defer ended.Store(true)
		sent, reported := offset, offset
		b, err := openBody(u.push.s, u.blob, offset, n, func(k int64) {
			if ended.Load() {
				return
			}
			dog.moved(k)
			if sent += k; sent-reported >= sendPiece || sent == offset+n {
				reported = sent
				u.emit(Moved, sent, nil)
			}
			if sent == offset+n {
				releaseSlot()
			}
		})
		if err != nil {
			return nil, err
		}
		req.Body, req.ContentLength = b, n
		req.Header.Set("Content-Type", "application/octet-stream")
		if method == http.MethodPatch || offset > 0 {
			req.Header.Set("Content-Range", fmt.Sprintf("%d-%d", offset, offset+n-1))
		}
	}
	resp, err := u.push.r.do(req)
	if err != nil {
		return nil, dog.cause(ctx, err)
	}
	return resp, dog.cause(ctx, finish(resp, want...))
}

// exchange makes a request without a body. It returns the response with its body closed.
func (p *pusher) exchange(ctx context.Context, r *repository, method string, at *url.URL,
	want ...int) (*http.Response, error) {
	ctx, dog := startWatchdog(ctx, 0, p.opts.Stall)
	defer dog.stop()
	req, err := r.request(ctx, method, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	// A nil value is not sent, but tells net/http that the request is idempotent and may be repeated on a new connection.
	req.Header["X-Idempotency-Key"] = nil
	resp, err := r.do(req)
	if err != nil {
		return nil, dog.cause(ctx, err)
	}
	return resp, dog.cause(ctx, finish(resp, want...))
}

// finish is expect for responses whose body is not needed: it drains and closes the body.
func finish(resp *http.Response, want ...int) error {
	if err := expect(resp, want...); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody)) // so that the connection can be reused
	resp.Body.Close()
	return nil
}

// post opens an upload session, or asks for a mount if the query says so. r provides the token.
func (p *pusher) post(ctx context.Context, r *repository, query url.Values) (*http.Response, error) {
	at := p.r.url("blobs", "uploads", "")
	at.RawQuery = query.Encode()
	return p.exchange(ctx, r, http.MethodPost, at, http.StatusAccepted, http.StatusCreated)
}

// cancel deletes an upload session. Errors are ignored: registries expire abandoned sessions.
func (p *pusher) cancel(ctx context.Context, at *url.URL) {
	ctx, end := context.WithTimeout(ctx, 10*time.Second)
	defer end()
	_, _ = p.exchange(ctx, p.r, http.MethodDelete, at, http.StatusNoContent, http.StatusAccepted, http.StatusOK)
}

// headBlob reports whether the registry has a blob. A registry without HEAD for blobs (405) counts as not having it.
func (p *pusher) headBlob(ctx context.Context, b blob) (bool, error) {
	return retry(ctx, p.c, func() (bool, error) { return p.headOnce(ctx, b) })
}

func (p *pusher) headOnce(ctx context.Context, b blob) (bool, error) {
	resp, err := p.exchange(ctx, p.r, http.MethodHead, p.r.url("blobs", string(b.Digest)), http.StatusOK)
	var status *StatusError
	switch {
	case err == nil:
		return resp.ContentLength <= 0 || resp.ContentLength == b.Size, nil
	case errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusMethodNotAllowed):
		return false, nil
	}
	return false, err
}
