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

// Blobs below this size go up in one request, without a note in the store: doing that again costs less.
const smallBlob = 16 << 20

// Chunks get smaller where a registry or a connection does not take larger ones, down to this.
const minChunk = 1 << 20

// How often an exchange is put right at once, without the registry having more of the blob after it.
const maxRepairs = 8

// upload is a blob on its way: a small machine whose every step is one exchange. What the registry says it has decides
// what comes next, so that any step may fail (distribution-spec v1.1.1, "Pushing blobs").
type upload struct {
	*pusher
	blob    blob
	session *session

	location    *url.URL // where it goes on; nil when no upload is open
	offset      int64    // bytes that the registry has
	maxOffset   int64    // most bytes that it has had
	needsStatus bool     // the registry has to say how much it has
	needsHead   bool     // the blob may be there already: ask for it before anything else
	chunkMin    int64    // OCI-Chunk-Min-Length

	interrupted bool // the last chunk was interrupted
	repairs     int  // since high has grown
	restarted   bool // started over since the registry found another digest
}

// upload sends one blob.
func (p *pusher) upload(ctx context.Context, b blob) error {
	u := &upload{pusher: p, blob: b}
	if !u.small() {
		u.session = p.session(b.Digest)
		defer u.session.close()
		if at, note := u.session.load(u.r); at != nil && note.Digest == b.Digest && note.Size == b.Size {
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
	u.c.emit(Event{Kind: kind, Digest: u.blob.Digest, Name: u.blob.name, Bytes: bytes, Total: u.blob.Size, Err: err})
}

// small blobs and those for registries without chunks go up whole.
func (u *upload) small() bool {
	return u.blob.Size <= smallBlob && u.blob.Size <= u.chunkSize.Load() || u.monolithic()
}

func (u *upload) monolithic() bool { return u.r.rule.monolithic || u.noChunks.Load() }

// run takes steps until the blob is there.
func (u *upload) run(ctx context.Context) (EventKind, error) {
	a := u.c.attempts()
	if !u.needsStatus { // else the registry has to say where it begins
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

// step makes one exchange. done is not empty when the blob is there.
func (u *upload) step(ctx context.Context) (done EventKind, err error) {
	switch {
	case u.needsHead:
		there, err := u.headOnce(ctx, u.blob)
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

// lost forgets the upload: the next step begins another.
func (u *upload) reset() {
	u.location, u.offset, u.needsStatus = nil, 0, false
}

// repair decides how it goes on after an exchange that failed. nil means at once; else the error says why it failed, and
// whether another attempt makes sense.
func (u *upload) repair(err error) error {
	var status *StatusError
	told := errors.As(err, &status) && !errors.Is(err, ErrInterrupted)
	switch {
	case !told || temporary(err):
		if u.location != nil {
			u.needsStatus = true
			if u.monolithic() {
				u.reset()
			}
		}
		return err
	case errors.Is(err, errStatusRefused), status.Status == http.StatusGone, status.Code == "BLOB_UPLOAD_UNKNOWN",
		status.Status == http.StatusNotFound && u.location != nil:
		u.needsHead = u.offset > 0 // it may be lost since it is done
		u.reset()
		return nil
	case status.Status == http.StatusRequestedRangeNotSatisfiable:
		u.needsStatus = true
		from, _ := url.Parse(status.URL)
		if at, ok := u.r.uploadLocation(status.Header, from); ok {
			if n, ok := rangeEnd(status.Header); ok && n <= u.blob.Size {
				u.location, u.offset, u.needsStatus = at, n, false
			}
		}
		return nil
	case status.Status == http.StatusRequestEntityTooLarge:
		n := min(u.chunkSize.Load(), u.blob.Size) / 2
		if n < max(u.chunkMin, minChunk) || u.monolithic() {
			return fmt.Errorf("the registry does not take so large a body: %w", err)
		}
		u.chunkSize.Store(n)
		u.needsStatus = true
		return nil
	case status.Method == http.MethodPatch && (status.Status == http.StatusMethodNotAllowed || status.Status == http.StatusNotImplemented):
		u.noChunks.Store(true)
		if u.offset > 0 {
			u.reset()
		}
		return nil
	case status.Method == http.MethodPut && status.Code == "DIGEST_INVALID":
		if err := u.rehash(); err != nil {
			return err
		}
		if u.restarted {
			return fmt.Errorf("%w: the registry has read other bytes twice, the store's are right: %w", ErrDigest, err)
		}
		u.restarted = true
		u.reset()
		return nil
	case status.Status == http.StatusBadRequest && u.location != nil && status.Method != http.MethodPost:
		switch status.Code {
		case "", "BLOB_UPLOAD_INVALID", "SIZE_INVALID", "RANGE_INVALID":
			u.needsStatus = true
			return nil
		}
	}
	return err
}

// rehash reads the store's blob: a registry has found other bytes in it than its digest says.
func (u *upload) rehash() error {
	if u.blob.data != nil {
		return nil // it was hashed when it was made
	}
	f, err := u.s.OpenBlob(u.blob.Digest)
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := digest.SHA256.FromReader(f)
	if err != nil {
		return err
	}
	if got != u.blob.Digest {
		return fmt.Errorf("its bytes in the store have digest %s: %w", got, manifest.ErrCorrupt)
	}
	return nil
}

// begin opens an upload, or has the blob mounted instead.
func (u *upload) open(ctx context.Context) (EventKind, error) {
	if u.mounter != nil {
		for len(u.blob.from) > 0 && !u.noFrom.Load() {
			from := u.blob.from[0]
			resp, err := u.post(ctx, u.mounter, url.Values{"mount": {string(u.blob.Digest)}, "from": {from}})
			if err != nil && temporary(err) {
				return "", err
			}
			u.blob.from = u.blob.from[1:]
			switch {
			case errors.Is(err, ErrUnauthorized): // no leave to read there
				u.noFrom.Store(true)
			case err != nil:
			case resp.StatusCode == http.StatusCreated:
				u.abandon(ctx)
				return Mounted, nil
			case u.location == nil:
				_ = u.opened(resp)
			default: // one upload is enough
				if at, ok := u.r.uploadLocation(resp.Header, resp.Request.URL); ok {
					u.cancel(ctx, at)
				}
			}
		}
		if u.location != nil {
			return "", nil
		}
	}
	query := url.Values{}
	if !u.noMount.Load() {
		query.Set("mount", string(u.blob.Digest))
	}
	resp, err := u.post(ctx, u.r, query)
	var status *StatusError
	if len(query) > 0 && errors.As(err, &status) && !temporary(err) && status.Status != http.StatusUnauthorized {
		u.noMount.Store(true)
		resp, err = u.post(ctx, u.r, nil)
	}
	if err != nil {
		return "", err
	}
	if resp.StatusCode == http.StatusCreated {
		return Mounted, nil
	}
	return "", u.opened(resp)
}

// begun reads the answer that opens an upload.
func (u *upload) opened(resp *http.Response) error {
	at, ok := u.r.uploadLocation(resp.Header, resp.Request.URL)
	if !ok {
		return fmt.Errorf("POST %s: the answer does not say where the upload goes", displayURL(resp.Request.URL))
	}
	u.location, u.offset, u.chunkMin = at, 0, chunkMinLength(resp.Header)
	u.save()
	return nil
}

// abandon ends an upload that is not needed.
func (u *upload) abandon(ctx context.Context) {
	if u.location != nil {
		u.cancel(ctx, u.location)
		u.reset()
	}
}

func (u *upload) save() {
	u.session.save(u.location, sessionRecord{Registry: u.r.origin(), Repository: u.dst.Host + "/" + u.r.path, Digest: u.blob.Digest, Size: u.blob.Size, Offset: u.offset, ChunkMin: u.chunkMin})
}

// patch sends the next chunk.
func (u *upload) patch(ctx context.Context) error {
	n := min(max(u.chunkSize.Load(), u.chunkMin), u.blob.Size-u.offset)
	before := u.offset
	resp, err := u.send(ctx, http.MethodPatch, u.location, u.offset, n, http.StatusAccepted, http.StatusNoContent, http.StatusCreated)
	u.interrupted = err != nil
	if err != nil {
		return err
	}
	if at, ok := u.r.uploadLocation(resp.Header, resp.Request.URL); ok && !isBlob(at) {
		u.location = at
	} else if resp.StatusCode == http.StatusCreated {
		u.needsHead = true // there is nothing to go on with: it may be complete
	}
	has, ok := rangeEnd(resp.Header)
	switch {
	case !ok:
		has = before + n
	case has > before+n:
		u.reset()
		return fmt.Errorf("%w: the registry says that it has %d bytes of %d that were sent", ErrInterrupted, has, before+n)
	case has <= before:
		u.offset, u.interrupted = has, true
		return fmt.Errorf("%w: the registry has taken nothing of a chunk of %d bytes", ErrInterrupted, n)
	}
	u.offset = has
	u.save()
	u.emit(Moved, u.offset, nil)
	return nil
}

// put ends the upload, with all of the blob where it goes up whole.
func (u *upload) put(ctx context.Context) (EventKind, error) {
	at := *u.location
	if at.RawQuery != "" {
		at.RawQuery += "&" // it is the registry's own: not to be ordered or spelled anew
	}
	at.RawQuery += "digest=" + url.QueryEscape(string(u.blob.Digest))
	n := u.blob.Size - u.offset
	resp, err := u.send(ctx, http.MethodPut, &at, u.offset, n, http.StatusCreated, http.StatusNoContent, http.StatusAccepted)
	if err != nil {
		u.needsHead = true // the registry may have got that far
		return "", err
	}
	if got := digest.Digest(resp.Header.Get("Docker-Content-Digest")); got.Validate() == nil && got.Algorithm() == digest.SHA256 && got != u.blob.Digest {
		return "", fmt.Errorf("the registry stored it as %s: %w", got, ErrDigest)
	}
	if resp.StatusCode == http.StatusAccepted {
		u.needsHead = true
		return "", fmt.Errorf("%w: the registry has taken the blob and has it not yet", ErrInterrupted)
	}
	return Done, nil
}

// errStatusRefused is a registry that does not say how far an upload is. Distribution 2.8 does not after a part of a chunk: the
// offset that it signed into the upload's address is not the size of the file any more ("upload resumed at wrong offset").
var errStatusRefused = errors.New("the registry does not say how far the upload is")

// status asks how much of the blob the registry has.
func (u *upload) status(ctx context.Context) error {
	resp, err := u.exchange(ctx, u.r, http.MethodGet, u.location, http.StatusNoContent, http.StatusOK, http.StatusAccepted)
	if err != nil {
		var status *StatusError
		if temporary(err) || errors.As(err, &status) && status.Status == http.StatusUnauthorized {
			return err
		}
		return fmt.Errorf("%w: %w", errStatusRefused, err)
	}
	before := u.offset
	if at, ok := u.r.uploadLocation(resp.Header, resp.Request.URL); ok && !isBlob(at) {
		u.location = at
	}
	u.offset, _ = rangeEnd(resp.Header)
	u.needsStatus = false
	if u.offset > u.blob.Size {
		u.abandon(ctx)
		return nil
	}
	if u.interrupted && u.offset <= before { // it keeps only whole chunks: smaller ones are less to lose
		u.shrink()
	}
	u.interrupted = false
	u.save()
	u.emit(Moved, u.offset, nil)
	return nil
}

func (u *upload) shrink() {
	if n := u.chunkSize.Load(); n/2 >= max(u.chunkMin, minChunk) {
		u.chunkSize.CompareAndSwap(n, n/2)
	}
}

// send sends a stretch of the blob and reads the answer.
func (u *upload) send(ctx context.Context, method string, at *url.URL, offset, n int64, want ...int) (*http.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := u.sendOnce(ctx, method, at, offset, n, append(want, http.StatusTemporaryRedirect, http.StatusPermanentRedirect)...)
		if err != nil || resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
			return resp, err
		}
		next, ok := u.r.uploadLocation(resp.Header, resp.Request.URL)
		switch {
		case !ok:
			return nil, &redirectError{displayURL(at), "nowhere", "it has no usable Location"} // which is not quoted: it may hold a signature
		case hops == maxRedirects:
			return nil, &redirectError{displayURL(at), displayURL(next), "too many of them"}
		}
		at = next
	}
}

func (u *upload) sendOnce(ctx context.Context, method string, at *url.URL, offset, n int64, want ...int) (*http.Response, error) {
	leave := func() {}
	if n > 0 {
		select {
		case u.sendSlots <- struct{}{}:
			leave = sync.OnceFunc(func() { <-u.sendSlots })
			defer leave()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	ctx, dog := startWatchdog(ctx, n, u.opts.Stall)
	defer dog.stop()
	req, err := u.r.request(ctx, method, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		var ended atomic.Bool // net/http may go on reading a while after an early answer
		defer ended.Store(true)
		sent, told := offset, offset
		b, err := openBody(u.s, u.blob, offset, n, func(k int64) {
			if ended.Load() {
				return
			}
			dog.moved(k)
			if sent += k; sent-told >= sendPiece || sent == offset+n {
				told = sent
				u.emit(Moved, sent, nil)
			}
			if sent == offset+n {
				leave()
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
	resp, err := u.r.do(req)
	if err != nil {
		return nil, dog.cause(ctx, err)
	}
	return resp, dog.cause(ctx, finish(resp, want...))
}

// exchange makes a request without a body.
func (p *pusher) exchange(ctx context.Context, r *repository, method string, at *url.URL, want ...int) (*http.Response, error) {
	ctx, dog := startWatchdog(ctx, 0, p.opts.Stall)
	defer dog.stop()
	req, err := r.request(ctx, method, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header["X-Idempotency-Key"] = nil // not sent; tells net/http that this may go again over another connection
	resp, err := r.do(req)
	if err != nil {
		return nil, dog.cause(ctx, err)
	}
	return resp, dog.cause(ctx, finish(resp, want...))
}

// finish is expect for answers whose body is of no interest.
func finish(resp *http.Response, want ...int) error {
	if err := expect(resp, want...); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody)) // so that the connection can be used again
	resp.Body.Close()
	return nil
}

func (p *pusher) post(ctx context.Context, r *repository, query url.Values) (*http.Response, error) {
	at := p.r.url("blobs", "uploads", "")
	at.RawQuery = query.Encode()
	return p.exchange(ctx, r, http.MethodPost, at, http.StatusAccepted, http.StatusCreated)
}

// cancel tells the registry that an upload will not go on. One that does not hear it drops the upload in its own time.
func (p *pusher) cancel(ctx context.Context, at *url.URL) {
	ctx, end := context.WithTimeout(ctx, 10*time.Second)
	defer end()
	_, _ = p.exchange(ctx, p.r, http.MethodDelete, at, http.StatusNoContent, http.StatusAccepted, http.StatusOK)
}

// headBlob tells whether the registry has a blob. One that refuses the question has it not, as far as anybody knows.
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
