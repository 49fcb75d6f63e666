package fetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"

	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/waiting"
	"github.com/opencontainers/go-digest"
)

// Copied is a blob that is read from one registry while it is sent to another. net/http may still read an earlier
// request's body while the next one begins, so it is safe for concurrent use.
type Copied struct {
	from download // what makes requests and checks responses; it has no partial

	mu     sync.Mutex
	sum    hash.Hash
	hashed int64 // bytes from the blob's begin in sum
	failed error // why the blob cannot be read; retrying did not help
}

// Copy returns what reads a blob of a repository.
func Copy(src *remote.Repository, tune Tuning, b Blob) *Copied {
	c := newCopied(&Fetcher{Src: src, Tune: tune}, b)
	c.from.timeouts = src.Timeouts()
	return c
}

func newCopied(f *Fetcher, b Blob) *Copied {
	return &Copied{from: download{fetcher: f, blob: b}, sum: sha256.New()}
}

// Failure returns why the blob cannot be read. A nil blob can.
func (b *Copied) Failure() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// fail records and returns why the blob cannot be read.
func (b *Copied) fail(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = fmt.Errorf("read from %s: %w", b.from.fetcher.Src.Origin(), err)
	}
	return b.failed
}

// passed hashes bytes at an offset, except those that have passed before. It compares the digest with the last ones, so
// that a registry that does not compare it never gets the end of a damaged blob.
func (b *Copied) passed(p []byte, at int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.hashed - at // a chunk that is sent again need not be read in the same pieces
	if before < 0 || before >= int64(len(p)) {
		return nil
	}
	b.sum.Write(p[before:])
	if b.hashed += int64(len(p)) - before; b.hashed < b.from.blob.Size {
		return nil
	}
	if got := digest.NewDigest(digest.SHA256, b.sum); got != b.from.blob.Digest {
		return fmt.Errorf("the registry sent content with digest %s: %w", got, remote.ErrDigest)
	}
	return nil
}

// Open returns a reader of n bytes from offset on.
func (b *Copied) Open(ctx context.Context, offset, n int64) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	return &copyReader{
		b: b, ctx: ctx, cancel: cancel, at: offset, end: offset + n, attempts: b.from.fetcher.Src.Attempts(),
	}
}

// copyReader reads a range of a blob. After a failure it continues where it was, with another request.
type copyReader struct {
	b        *Copied
	ctx      context.Context
	cancel   context.CancelFunc
	at, end  int64
	attempts *remote.Attempts
	noRanges bool // the server does not serve them

	resp  *http.Response // nil between requests
	body  io.Reader      // of resp
	watch *waiting.Watch
}

func (r *copyReader) Read(p []byte) (int, error) {
	if r.at == r.end {
		return 0, io.EOF
	}
	defer waiting.Pause(r.ctx)() // the destination, whose request this is part of, waits for the source
	for {
		n, err := r.readOnce(p[:min(int64(len(p)), r.end-r.at)])
		if err == nil {
			err = r.b.passed(p[:n], r.at)
			if err != nil {
				r.finish()
				return 0, r.b.fail(err)
			}
			r.attempts.Progress(int64(n))
			if r.at += int64(n); r.at == r.end {
				r.finish()
			}
			return n, nil
		}
		r.finish()
		if errors.Is(err, errNoRanges) && !r.noRanges {
			r.noRanges = true
			continue
		}
		if err = r.attempts.Backoff(r.ctx, err); err != nil {
			if r.ctx.Err() == nil {
				err = r.b.fail(err)
			}
			return 0, err
		}
	}
}

// readOnce reads from the open response, or opens one. It returns an error or at least one byte.
func (r *copyReader) readOnce(p []byte) (int, error) {
	if r.resp == nil {
		if err := r.request(); err != nil {
			return 0, err
		}
	}
	r.watch.Resume()
	n, err := r.body.Read(p)
	r.watch.Moved(int64(n))
	r.watch.Pause() // the time that the destination takes does not count
	if n > 0 {
		return n, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return 0, remote.Interrupted(r.watch, fmt.Errorf("%w: %w", remote.ErrInterrupted, err))
}

// request requests the rest of the range.
func (r *copyReader) request() (err error) {
	watch := r.b.from.timeouts.Watch(r.ctx, r.b.from.fetcher.Tune.Response, 1)
	want := ingest.Range{Start: r.at, End: r.end}
	if r.noRanges {
		want = ingest.Range{Start: 0, End: r.b.from.blob.Size}
	}
	resp, err := r.b.from.requestRange(watch.Context(), want, false)
	if err != nil {
		defer watch.Stop()
		return remote.Interrupted(watch, err)
	}
	body, sent, err := r.b.from.readResponse(resp, want, nil)
	watch.Body(r.b.from.fetcher.Tune.Stall)
	if err == nil && sent.Start < r.at {
		_, err = io.Copy(io.Discard, watch.Reader(io.LimitReader(body, r.at-sent.Start)))
	}
	if err != nil {
		resp.Body.Close()
		defer watch.Stop()
		return remote.Interrupted(watch, err)
	}
	watch.Pause()
	r.watch, r.resp, r.body = watch, resp, body
	return nil
}

// finish ends the request, if there is one.
func (r *copyReader) finish() {
	if r.resp == nil {
		return
	}
	if r.at == r.end && r.resp.StatusCode == http.StatusPartialContent {
		remote.Drain(r.resp) // so that the connection can be reused
	} else {
		r.resp.Body.Close()
	}
	r.watch.Stop()
	r.resp = nil
}

// Close ends the reads. It may be called during a Read.
func (r *copyReader) Close() error {
	r.cancel()
	return nil
}
