package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/verdict"
)

// Limits on what an upload tries, without progress.
const (
	maxRestarts = 2 // sessions that are lost
	maxAsks     = 2 // requests for a session's offset, until it counts as lost
	putsUncut   = 2 // PUTs that are cut, until the blob goes in chunks
)

// minCutLimit is below the usual limits of proxies: a smaller PUT is cut for another reason.
const minCutLimit = 1 << 20

// trouble is what went wrong with an upload. The counts are of the time since it last advanced.
type trouble struct {
	reached  int64 // offset up to which it advanced
	cuts     int   // bodies without an answer, or with one that may change
	doubts   int   // responses that make the offset doubtful
	restarts int
	mounts   int  // mounts that failed in a way that may change
	cut      bool // the last body did not arrive

	atOnce    bool  // the blob does not go in chunks
	inChunks  bool  // the blob does not go in one PUT
	tooLarge  error // why one PUT was refused
	corrupted bool  // the registry computed another digest
}

// advanced reports whether the upload is a good part of a chunk further than before, and if so forgets its trouble. So
// a registry that keeps next to nothing of each chunk does not hold a push up forever.
func (u *upload) advanced() bool {
	if u.offset < u.blob.Size && u.offset-u.reached < max(min(remote.MinChunk, u.sent)/2, 1) || u.offset <= u.reached {
		return false
	}
	u.reached, u.cuts, u.doubts, u.restarts = u.offset, 0, 0, 0
	return true
}

// Useless responses to a chunk, or to the request for the offset.
var (
	errOffset  = errors.New("the registry does not say how much of the blob it has")
	errNotKept = errors.New("chunk lost")
)

// repair decides how to continue after a failed step. If it returns nil, the next step runs immediately. Otherwise it
// returns the error to report, and the caller's backoff decides whether to try again. It ends: each way is tried once,
// and what is tried again is counted.
func (u *upload) repair(ctx context.Context, err error) error {
	var status *remote.StatusError
	answered := errors.As(err, &status) && !errors.Is(err, remote.ErrInterrupted)
	switch {
	case errors.Is(err, errPieceGone), u.did == verdict.Mount:
		return err
	case errors.Is(err, errOffset):
		return u.restart(ctx, err)
	case errors.Is(err, errNotKept):
		return u.doubt(ctx, err)
	case !answered:
		return u.interrupted(err)
	case u.did == verdict.PutBlob && status.Code == "DIGEST_INVALID":
		return u.compare(ctx, err)
	case u.did != verdict.PutBlob && status.Code == "BLOB_UPLOAD_UNKNOWN":
		return u.restart(ctx, err)
	}
	switch remote.VerdictOf(u.did, err) {
	case verdict.Retry:
		return u.interrupted(err)
	case verdict.Smaller:
		return u.smaller(ctx, err)
	case verdict.FallBack:
		return u.putWhole(ctx, err)
	case verdict.Restart:
		return u.restart(ctx, err)
	case verdict.Ask:
		// The answer to a chunk that begins at another offset should hold the right one.
		from, _ := url.Parse(status.URL)
		at, found := u.push.r.UploadLocation(status.Header, from)
		if has, ok := rangeEnd(status.Header); ok && found && has != u.offset && has <= u.blob.Size && !u.doubtful() {
			u.location, u.offset = at, has
			return nil
		}
		return u.doubt(ctx, err)
	case verdict.Look:
		if u.restarts++; u.restarts > maxRestarts {
			return err
		}
		u.needsHead, u.refused = true, err
		return nil
	}
	return err
}

// interrupted prepares another attempt after a failure that may not repeat itself. It returns the error: the attempt
// comes after a delay.
func (u *upload) interrupted(err error) error {
	switch u.did {
	case verdict.PutBlob: // the registry may have committed the blob before the error
		u.needsHead = true
		fallthrough
	case verdict.FirstChunk, verdict.NextChunk:
		u.cuts++
		u.cut = !remote.Limited(err)
		if u.needsStatus = true; u.whole && (u.atOnce || u.push.r.Abilities().NoChunks) {
			u.reset() // nothing to continue
		}
	}
	return err
}

// shrinkIfCut makes the requests of all uploads smaller if the last one was cut: a proxy may have a limit and not say
// so. A small blob in one PUT gets a second chance.
func (u *upload) shrinkIfCut() {
	next := remote.Shrink(u.sent, u.floor(), u.cuts)
	if u.cut && next > 0 && (!u.whole || u.cuts >= putsUncut && u.sent > minCutLimit) {
		u.push.r.Learn(func(a *remote.Abilities) { remote.AtMost(&a.MaxBody, next) })
	}
	u.cut = false
}

// floor is the smallest size of a chunk.
func (u *upload) floor() int64 { return max(min(remote.MinChunk, u.push.opts.ChunkSize), u.chunkMin) }

// smaller sends less at a time, after the registry or a proxy refused the size of a request.
func (u *upload) smaller(ctx context.Context, err error) error {
	next := remote.Shrink(u.sent, u.floor(), 1)
	if next > 0 {
		u.push.r.Learn(func(a *remote.Abilities) { remote.AtMost(&a.MaxBody, next) })
	}
	if u.whole {
		u.tooLarge = err
	}
	switch {
	case next > 0 && !u.atOnce:
		u.inChunks = true
		return nil
	case !u.whole:
		return u.putWhole(ctx, fmt.Errorf("chunks of %d bytes: %w: %w", u.sent, remote.ErrBodySize, err))
	}
	return fmt.Errorf("%d bytes: %w: %w", u.sent, remote.ErrBodySize, err)
}

// doubtful counts an answer that makes the offset doubtful, and reports whether there were too many.
func (u *upload) doubtful() bool { u.doubts++; return u.doubts > maxAsks }

// doubt asks for the offset, unless that did not help before.
func (u *upload) doubt(ctx context.Context, err error) error {
	if u.whole || u.doubtful() {
		return u.restart(ctx, err)
	}
	u.needsStatus = true
	return nil
}

// restart begins the blob again in another session. If sessions are always lost, the other way is one PUT.
func (u *upload) restart(ctx context.Context, err error) error {
	u.shrinkIfCut()
	u.needsHead = u.offset > 0 // the registry may have closed the session because the blob is complete
	u.abandon(ctx)
	if u.restarts++; u.restarts > maxRestarts {
		return u.putWhole(ctx, err)
	}
	return nil
}

// putWhole sends the blob in one PUT, after the registry refused its chunks with err. If no blob arrived in chunks
// yet, the other blobs are sent so too.
func (u *upload) putWhole(ctx context.Context, err error) error {
	switch {
	case u.piece != nil:
		u.push.r.Learn(func(a *remote.Abilities) { a.NoPieces = true })
		return fmt.Errorf("%w: %w", errPieceGone, err)
	case u.tooLarge != nil:
		return fmt.Errorf("%w: %w; in chunks: %w", remote.ErrBodySize, u.tooLarge, err)
	case u.atOnce || u.whole:
		return err
	}
	u.push.r.Learn(func(a *remote.Abilities) { a.NoChunks = !a.Chunks })
	u.abandon(ctx)
	u.atOnce, u.cut, u.cuts, u.restarts = true, false, 0, 0
	return nil
}

// lastWay prepares another way after the attempts are spent with err: one PUT if no first chunk arrived, or another
// session if the registry does not say what this one has. Without one it returns the error.
func (u *upload) lastWay(ctx context.Context, err error) error {
	var status *remote.StatusError
	switch {
	case ctx.Err() != nil || !remote.Temporary(err):
	case u.did == verdict.FirstChunk:
		return u.putWhole(ctx, err)
	case u.did == verdict.AskUpload && errors.As(err, &status) && u.restarts < maxRestarts:
		u.restarts++
		u.shrinkIfCut()
		u.location, u.offset, u.needsStatus = nil, 0, false // the record stays: only the registry may be down
		return nil
	}
	return err
}

// compare reads this machine's copy of the blob, after the registry received other bytes. If it is intact, it is
// uploaded once more.
func (u *upload) compare(ctx context.Context, err error) error {
	if err := u.rehash(ctx); err != nil {
		return err
	}
	if u.corrupted {
		return fmt.Errorf("%w: the registry computed another digest twice, but the stored blob is intact: %w",
			remote.ErrDigest, err)
	}
	u.corrupted = true
	u.reset()
	return nil
}

// rehash verifies this machine's copy of the blob, after the registry reported a digest mismatch.
func (u *upload) rehash(ctx context.Context) error {
	if u.blob.data != nil || u.copied != nil || u.piece != nil || u.push.files != nil {
		return nil // its digest was computed from these bytes, or before or while they passed
	}
	f, err := openFile(u.push.s, u.blob)
	if err != nil {
		return err
	}
	defer f.Close()
	return verify(ctx, f, u.blob.Digest)
}
