package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
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
	copied  *copiedBlob // reads the blob, if it is copied from another repository; else nil
	piece   *piece      // what is at hand of a blob that is being written; else nil

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
	if p.source != nil {
		u.copied = p.source.blob(b)
	}
	if !u.small() {
		u.session = p.session(b.Digest)
		defer u.session.close()
		if at, note := u.session.load(u.push.r.Origin()); at != nil && note.Digest == b.Digest && note.Size == b.Size {
			u.location, u.chunkMin, u.needsStatus = at, note.ChunkMin, true
		}
	}
	kind, err := u.run(ctx)
	if err != nil && u.copied != nil { // nothing can resume the session
		u.abandon(context.WithoutCancel(ctx))
	}
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
func (u *upload) monolithic() bool { return u.push.rule.monolithic || u.push.noChunks.Load() }

// run takes steps until the registry has the blob. It returns how: [Done] or [Mounted].
func (u *upload) run(ctx context.Context) (EventKind, error) {
	a := u.push.r.Attempts()
	if !u.needsStatus && (u.piece == nil || u.piece.begin == 0) { // a resumed upload emits Begin once the offset is known
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
			a.Reset()
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if failed := u.copied.failure(); failed != nil {
			return "", failed
		}
		if errors.Is(err, errPieceGone) {
			return "", err
		}
		final := u.repair(err)
		if final == nil {
			if u.repairs++; u.repairs > maxRepairs {
				return "", err
			}
			continue
		}
		if a.Remain(final) {
			u.emit(Retry, u.offset, final)
		}
		if err := a.Backoff(ctx, final); err != nil {
			return "", err
		}
	}
}

// step takes the next step of the upload. done is the final event once the registry has the blob, else empty.
func (u *upload) step(ctx context.Context) (done EventKind, err error) {
	switch {
	case u.needsHead && u.blob.Digest == "": // it cannot be there: it is not complete
		u.needsHead = false
		return "", nil
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
	case u.has() == 0 && u.blob.Digest == "":
		return Moved, nil
	case u.gone():
		return "", errPieceGone
	case u.monolithic(), u.small() && u.offset == 0, u.offset == u.blob.Size:
		return u.put(ctx)
	}
	return "", u.patch(ctx)
}

// open opens an upload session, or mounts the blob from another repository, for which it returns [Mounted]. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#mounting-a-blob-from-another-repository.
func (u *upload) open(ctx context.Context) (EventKind, error) {
	if u.push.mounter != nil {
		for len(u.blob.from) > 0 && !u.push.noFrom.Load() {
			from := u.blob.from[0]
			resp, err := u.push.post(ctx, u.push.mounter, url.Values{"mount": {string(u.blob.Digest)}, "from": {from}})
			if err != nil && remote.Temporary(err) {
				return "", err
			}
			u.blob.from = u.blob.from[1:]
			switch {
			case errors.Is(err, remote.ErrUnauthorized): // no permission to pull from the source repositories
				u.push.noFrom.Store(true)
			case err != nil:
			case resp.StatusCode == http.StatusCreated:
				u.abandon(ctx)
				return Mounted, nil
			case u.location == nil:
				_ = u.opened(resp)
			default: // a failed mount opens a session too: keep the first
				if at, ok := u.push.r.UploadLocation(resp.Header, resp.Request.URL); ok {
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
	if !u.push.noMount.Load() && u.blob.Digest != "" {
		query.Set("mount", string(u.blob.Digest))
	}
	resp, err := u.push.post(ctx, u.push.r, query)
	var status *remote.StatusError
	if len(query) > 0 && errors.As(err, &status) && !remote.Temporary(err) && status.Status != http.StatusUnauthorized {
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
	at, ok := u.push.r.UploadLocation(resp.Header, resp.Request.URL)
	if !ok {
		return fmt.Errorf("POST %s: the response has no usable Location", redact.DisplayURL(resp.Request.URL))
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
	u.session.save(u.location, sessionRecord{Registry: u.push.r.Origin(),
		Repository: u.push.dst.Host + "/" + u.push.r.Path,
		Digest:     u.blob.Digest, Size: u.blob.Size, Offset: u.offset, ChunkMin: u.chunkMin})
}

// patch sends the next chunk. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks.
func (u *upload) patch(ctx context.Context) error {
	n := min(max(u.push.chunkSize.Load(), u.chunkMin), u.has())
	before := u.offset
	resp, err := u.send(ctx, http.MethodPatch, u.location, u.offset, n,
		http.StatusAccepted, http.StatusNoContent, http.StatusCreated)
	u.interrupted = err != nil
	if err != nil {
		return err
	}
	if at, ok := u.push.r.UploadLocation(resp.Header, resp.Request.URL); ok && !isBlob(at) {
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
		return fmt.Errorf("%w: the registry reports %d bytes, but only %d were sent", remote.ErrInterrupted, has, before+n)
	case has <= before:
		u.offset, u.interrupted = has, true
		return fmt.Errorf("%w: the registry kept nothing of a chunk of %d bytes", remote.ErrInterrupted, n)
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
		return "", fmt.Errorf("the registry stored the blob as %s: %w", got, remote.ErrDigest)
	}
	if resp.StatusCode == http.StatusAccepted {
		u.needsHead = true
		return "", fmt.Errorf("%w: the registry accepted the blob but has not committed it", remote.ErrInterrupted)
	}
	return Done, nil
}

// status asks the registry for the session's offset with a GET of its location.
func (u *upload) status(ctx context.Context) error {
	resp, err := u.push.exchange(ctx, u.push.r, http.MethodGet, u.location, http.StatusNoContent, http.StatusOK,
		http.StatusAccepted)
	if err != nil {
		var status *remote.StatusError
		if remote.Temporary(err) || errors.As(err, &status) && status.Status == http.StatusUnauthorized {
			return err
		}
		return fmt.Errorf("%w: %w", errStatusRefused, err)
	}
	before := u.offset
	if at, ok := u.push.r.UploadLocation(resp.Header, resp.Request.URL); ok && !isBlob(at) {
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
