package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/ingotml/ingot/registry/fetch"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/resume"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/opencontainers/go-digest"
)

// smallBlob is the size up to which a blob is uploaded in a single request and is not resumable: restarting is cheaper
// than tracking it. With [PushOptions.ChunkSize], that is the size.
const smallBlob = 16 << 20

// upload is a state machine that pushes one blob. Each step makes one HTTP exchange, or several to open a session. The
// offset reported by the registry decides the next step, so any step may fail and be retried: see repair. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-blobs.
type upload struct {
	push    *pusher
	blob    blob
	session *resume.Session
	copied  *fetch.Copied // reads the blob, if it is copied from another repository; else nil
	piece   *piece        // what is at hand of a blob that is being written; else nil

	location    *url.URL // of the upload session; nil if no session is open
	offset      int64    // number of bytes that the registry has
	whole       bool     // the session takes the blob in one PUT
	needsStatus bool     // the next step asks the registry for its offset
	needsHead   bool     // the next step checks whether the registry has the whole blob
	chunkMin    int64    // OCI-Chunk-Min-Length of the session

	slot    func()       // gives a send slot back; nil if the upload has none
	did     verdict.Step // of the last request
	sent    int64        // bytes in the body of the last one that had any
	refused error        // why a PUT was refused whose blob may be there
	trouble              // how often what went wrong
}

// upload pushes one blob. It resumes an earlier run's upload session if the store has a record of it.
func (p *pusher) upload(ctx context.Context, b blob) error {
	if p.files != nil {
		var err error
		if b.path, b.at, err = p.files.File(b.Descriptor); err == nil {
			err = verifyFile(ctx, b)
		}
		if err != nil {
			return fmt.Errorf("blob %s: %w", b.Digest, err)
		}
	}
	u := &upload{push: p, blob: b}
	if p.source != nil {
		u.copied = fetch.Copy(p.source.r, p.c.tune, fetch.Blob{Descriptor: b.Descriptor, Label: b.name})
	}
	if u.whole = u.onePut(); !u.whole {
		u.session = resume.Open(p.records, p.recordKey(b.Digest))
		defer u.session.Close()
		if at, was := u.session.Load(u.push.r.Origin()); at != nil && was.Digest == b.Digest && was.Size == b.Size {
			u.location, u.chunkMin, u.needsStatus = at, was.ChunkMin, true
		}
	}
	kind, err := u.run(ctx)
	if err != nil && u.session == nil { // nothing can resume the upload
		u.abandon(context.WithoutCancel(ctx))
	}
	if err != nil {
		if b.name != "" {
			return fmt.Errorf("blob %s (%s): %w", b.Digest, b.name, err)
		}
		return fmt.Errorf("blob %s: %w", b.Digest, err)
	}
	u.session.Remove()
	u.emit(kind, b.Size, nil)
	return nil
}

func (u *upload) emit(kind EventKind, bytes int64, err error) {
	u.push.c.emit(Event{Kind: kind, Digest: u.blob.Digest, Name: u.blob.name, Bytes: bytes, Total: u.blob.Size, Err: err})
}

// onePut reports whether the blob is sent in one request: because of its size, because the registry does not take
// chunks, or because it refused those of this blob. Such an upload has no session record.
func (u *upload) onePut() bool {
	can := u.push.r.Abilities()
	small := int64(smallBlob)
	if u.push.chunkGiven {
		small = u.push.opts.ChunkSize
	}
	switch {
	case u.piece != nil, u.inChunks && !u.atOnce:
		return false
	case u.atOnce, can.NoChunks:
		return true
	}
	return u.blob.Size <= min(small, u.chunkSize())
}

// chunkSize returns the size of the next chunk of a blob of any size.
func (u *upload) chunkSize() int64 {
	return max(remote.Limit(u.push.opts.ChunkSize, u.push.r.Abilities().MaxBody), u.chunkMin)
}

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
		if u.advanced() {
			a.Reset()
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if failed := u.copied.Failure(); failed != nil {
			return "", failed
		}
		final := u.repair(ctx, err)
		if final == nil {
			continue
		}
		if errors.Is(final, errPieceGone) {
			return "", final
		}
		if a.Remain(final) {
			u.emit(Retry, u.offset, final)
		}
		if err := a.Backoff(ctx, final); err != nil {
			if err = u.lastWay(ctx, err); err != nil {
				return "", err
			}
			a.Reset()
		}
	}
}

// step takes the next step of the upload. done is the final event once the registry has the blob, else empty.
func (u *upload) step(ctx context.Context) (done EventKind, err error) {
	if u.offset == 0 {
		u.whole = u.onePut() // other uploads may have found out what the registry takes
	}
	switch {
	case u.needsHead:
		return u.head(ctx)
	case u.location == nil:
		return u.open(ctx)
	case u.needsStatus:
		return "", u.status(ctx)
	case u.has() == 0 && u.blob.Digest == "":
		return Moved, nil
	case u.gone():
		return "", errPieceGone
	case u.whole, u.offset == u.blob.Size:
		return u.put(ctx)
	}
	return "", u.patch(ctx)
}

// head asks whether the registry has the blob.
func (u *upload) head(ctx context.Context) (EventKind, error) {
	u.did = verdict.HeadBlob
	if u.blob.Digest != "" { // else it is not complete
		there, err := u.push.headOnce(ctx, u.blob)
		if err != nil {
			return "", err
		}
		if there {
			return Done, nil
		}
	}
	u.needsHead = false
	if err := u.refused; err != nil {
		u.refused = nil
		u.abandon(ctx)
		return "", fmt.Errorf("%w: %w", remote.ErrInterrupted, err) // begin again, after a delay
	}
	return "", nil
}

// open opens an upload session, or mounts the blob from another repository, for which it returns [Mounted].
func (u *upload) open(ctx context.Context) (EventKind, error) {
	if kind, err := u.mount(ctx); kind != "" || err != nil || u.location != nil {
		return kind, err
	}
	u.did = verdict.OpenUpload
	resp, err := u.push.post(ctx, u.push.r, nil)
	if err != nil {
		return "", err
	}
	return "", u.opened(resp)
}

// opened records the session that a POST opened.
func (u *upload) opened(resp *http.Response) error {
	at, ok := u.push.r.UploadLocation(resp.Header, resp.Request.URL)
	if !ok || isBlob(at) {
		return fmt.Errorf("POST %s: %d, but the response has no usable Location",
			redact.DisplayURL(resp.Request.URL), resp.StatusCode)
	}
	u.location, u.offset, u.chunkMin = at, 0, chunkMinLength(resp.Header)
	if u.session != nil && u.onePut() {
		u.session.Remove()
		u.session = nil
	}
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

// reset forgets the session: the next step opens a new one, and no later run resumes this one.
func (u *upload) reset() {
	u.location, u.offset, u.needsStatus = nil, 0, false
	u.session.Forget()
}

// save updates the session record.
func (u *upload) save() {
	u.session.Save(u.location, resume.Record{Registry: u.push.r.Origin(),
		Repository: u.push.dst.Host + "/" + u.push.r.Path,
		Digest:     u.blob.Digest, Size: u.blob.Size, Offset: u.offset, ChunkMin: u.chunkMin})
}

// patch sends the next chunk. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks.
func (u *upload) patch(ctx context.Context) error {
	want := []int{http.StatusAccepted, http.StatusNoContent}
	if u.did = verdict.FirstChunk; u.offset > 0 {
		u.did = verdict.NextChunk
		want = append(want, http.StatusOK, http.StatusCreated)
	}
	if err := u.takeSlot(ctx); err != nil {
		return err
	}
	if u.offset == 0 && u.onePut() {
		u.leaveSlot()
		return nil
	}
	n, before := min(u.chunkSize(), u.has()), u.offset
	resp, err := u.send(ctx, http.MethodPatch, u.location, u.offset, n, want...)
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
	case !ok, has == before+n+1: // some count from 1
		has = before + n
	case has > before+n:
		return fmt.Errorf("%w: the registry reports %d bytes, but only %d were sent", errOffset, has, before+n)
	case has-before < n/2, has <= before:
		u.offset = has
		return fmt.Errorf("%w: the registry kept %d of %d bytes", errNotKept, max(has-before, 0), n)
	}
	u.offset = has
	u.save()
	u.emit(Moved, u.offset, nil)
	return nil
}

// put closes the session with the blob's digest and its remaining bytes, which may be all of them.
func (u *upload) put(ctx context.Context) (EventKind, error) {
	u.did = verdict.PutBlob
	if u.offset < u.blob.Size {
		if err := u.takeSlot(ctx); err != nil {
			return "", err
		}
		if u.offset == 0 && !u.onePut() {
			u.leaveSlot()
			return "", nil
		}
	}
	at := *u.location
	if at.RawQuery != "" {
		at.RawQuery += "&" // keep the registry's query byte for byte: it may be signed
	}
	at.RawQuery += "digest=" + url.QueryEscape(string(u.blob.Digest))
	resp, err := u.send(ctx, http.MethodPut, &at, u.offset, u.blob.Size-u.offset,
		http.StatusCreated, http.StatusNoContent, http.StatusAccepted)
	if err != nil {
		return "", err
	}
	got := digest.Digest(resp.Header.Get("Docker-Content-Digest"))
	if got.Validate() == nil && got.Algorithm() == digest.SHA256 && got != u.blob.Digest {
		return "", fmt.Errorf("the registry stored the blob as %s: %w", got, remote.ErrDigest)
	}
	if resp.StatusCode == http.StatusAccepted {
		return "", fmt.Errorf("%w: the registry accepted the blob but has not committed it", remote.ErrInterrupted)
	}
	if !u.whole {
		u.push.r.Learn(func(a *remote.Abilities) { a.Chunks = true })
	}
	return Done, nil
}

// status asks the registry for the session's offset with a GET of its location.
func (u *upload) status(ctx context.Context) error {
	u.did = verdict.AskUpload
	resp, err := u.push.exchange(ctx, u.push.r, http.MethodGet, u.location, http.StatusNoContent, http.StatusOK,
		http.StatusAccepted)
	if err != nil {
		return err
	}
	has, ok := rangeEnd(resp.Header)
	if !ok || has > u.blob.Size {
		return fmt.Errorf("%w: Range %q", errOffset, redact.Clip(resp.Header.Get("Range")))
	}
	if at, ok := u.push.r.UploadLocation(resp.Header, resp.Request.URL); ok && !isBlob(at) {
		u.location = at
	}
	before := u.offset
	u.offset, u.needsStatus, u.whole = has, false, u.whole && has == 0
	if u.offset <= before {
		u.shrinkIfCut() // the registry keeps only complete chunks: smaller ones lose less
	}
	u.cut = false
	u.save()
	u.emit(Moved, u.offset, nil)
	return nil
}
