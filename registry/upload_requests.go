package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
)

// minReport is the number of bytes after which progress is reported again.
const minReport = 256 << 10

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
		next, ok := u.push.r.UploadLocation(resp.Header, resp.Request.URL)
		switch {
		case !ok:
			// The Location is not quoted: it may hold a signature.
			return nil, remote.RedirectRefused(redact.DisplayURL(at), "nowhere", "it has no usable Location")
		case hops == remote.MaxRedirects:
			return nil, remote.RedirectRefused(redact.DisplayURL(at), redact.DisplayURL(next), "too many of them")
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
		if err := u.takeSlot(ctx); err != nil {
			return nil, err
		}
		defer u.leaveSlot()
		releaseSlot = u.slot
	}
	u.sent = n
	ctx, dog := u.push.startWatchdog(ctx, method, n)
	defer dog.stop()
	req, err := u.push.r.Request(ctx, method, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		var ended atomic.Bool // net/http may keep reading the body for a while after an early response
		defer ended.Store(true)
		sent, reported := offset, offset
		b, err := u.openBody(ctx, offset, n, func(k int64) {
			if ended.Load() {
				return
			}
			dog.moved(k)
			if sent += k; sent-reported >= minReport || sent == offset+n {
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
	resp, err := u.push.r.Do(req)
	if err != nil {
		req.Body.Close() // net/http has not seen it if the request was given up before, such as without credentials
		return nil, dog.cause(err)
	}
	return resp, dog.cause(finish(resp, want...))
}

// takeSlot waits for a send slot, unless the upload has one. While it waits, other uploads may find out what the
// registry takes, so its caller decides afterwards what to send.
func (u *upload) takeSlot(ctx context.Context) error {
	if u.slot != nil {
		return nil
	}
	select {
	case u.push.sendSlots <- struct{}{}:
		u.slot = sync.OnceFunc(func() { <-u.push.sendSlots })
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leaveSlot gives the send slot back.
func (u *upload) leaveSlot() {
	u.slot()
	u.slot = nil
}

// exchange makes a request without a body. It returns the response with its body closed.
func (p *pusher) exchange(ctx context.Context, r *remote.Repository, method string, at *url.URL,
	want ...int) (*http.Response, error) {
	ctx, dog := p.startWatchdog(ctx, method, 0)
	defer dog.stop()
	req, err := r.Request(ctx, method, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	// A nil value is not sent, but tells net/http that the request is idempotent and may be repeated on a new connection.
	req.Header["X-Idempotency-Key"] = nil
	resp, err := r.Do(req)
	if err != nil {
		return nil, dog.cause(err)
	}
	return resp, dog.cause(finish(resp, want...))
}

// finish is [remote.Expect] for responses whose body is not needed: it drains and closes the body.
func finish(resp *http.Response, want ...int) error {
	if err := remote.Expect(resp, want...); err != nil {
		return err
	}
	remote.Drain(resp)
	return nil
}

// post opens an upload session, or asks for a mount if the query says so. r provides the token.
func (p *pusher) post(ctx context.Context, r *remote.Repository, query url.Values) (*http.Response, error) {
	at := p.r.URL("blobs", "uploads", "")
	at.RawQuery = query.Encode()
	return p.exchange(ctx, r, http.MethodPost, at, http.StatusAccepted, http.StatusCreated, http.StatusOK)
}

// cancel deletes an upload session. A failure that may pass is worth a second try at once; after that, errors are
// ignored: registries expire abandoned sessions.
func (p *pusher) cancel(ctx context.Context, at *url.URL) {
	ctx, end := context.WithTimeout(ctx, 10*time.Second)
	defer end()
	for range 2 {
		_, err := p.exchange(ctx, p.r, http.MethodDelete, at, http.StatusNoContent, http.StatusAccepted, http.StatusOK)
		if !remote.Temporary(err) {
			return
		}
	}
}

// headBlob reports whether the registry has a blob. One that cannot be asked counts as not having it.
func (p *pusher) headBlob(ctx context.Context, b blob) (bool, error) {
	if slices.Contains(p.lacks, string(b.Digest)) {
		return false, nil
	}
	there, err := remote.Retry(ctx, p.r.Attempts(), func() (bool, error) { return p.headOnce(ctx, b) })
	var status *remote.StatusError
	if errors.As(err, &status) && remote.Temporary(err) {
		p.r.CannotLook(err)
		err = nil
	}
	return there, err
}

func (p *pusher) headOnce(ctx context.Context, b blob) (bool, error) {
	ctx, dog := p.startWatchdog(ctx, http.MethodHead, 0)
	defer dog.stop()
	there, err := p.r.HasBlob(ctx, b.Digest, b.Size)
	return there, dog.cause(err)
}

// isBlob reports whether a Location is the URL of a committed blob, not of an upload session.
func isBlob(u *url.URL) bool {
	return strings.Contains(u.Path, "/blobs/sha256:")
}

// rangeEnd returns the number of bytes that the registry has received, from its Range header: "0-99" means 100
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks). Registries send
// "0-0" or "0--1" for an empty upload.
func rangeEnd(h http.Header) (int64, bool) {
	value := strings.TrimPrefix(strings.TrimSpace(h.Get("Range")), "bytes=")
	first, last, ok := strings.Cut(value, "-")
	if !ok || first != "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(last, 10, 64)
	switch {
	case err != nil || n < -1:
		return 0, false
	case n <= 0:
		return 0, true
	}
	return n + 1, true
}

// chunkMinLength reads the OCI-Chunk-Min-Length header
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks). It returns 0 if
// there is none.
func chunkMinLength(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("OCI-Chunk-Min-Length"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
