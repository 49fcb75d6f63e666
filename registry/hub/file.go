package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/verdict"
)

// file is a file of a repository that is read over HTTP. It is safe for concurrent use.
type file struct {
	entry
	c      *Client
	name   Name
	commit string

	local local       // in the hub's cache
	whole atomic.Bool // all of its bytes were compared with its etag while they passed

	mu     sync.Mutex
	target *target // where the bytes are; nil = to be resolved
}

// target is where a file's bytes are: a signed address, or that of the repository itself.
type target struct {
	url    *url.URL
	named  address.Class
	signed bool   // the repository redirected to it, so it may be valid for a while only
	etag   string // of the first response; another one later is another file
}

// what names the file in errors.
func (f *file) what() string { return f.name.String() + "/" + f.path }

// readRange fills p with the bytes at an offset. It resumes after failures.
func (f *file) readRange(ctx context.Context, p []byte, offset int64) error {
	a := &attempts{c: f.c, what: f.what(), host: f.name.Host}
	for done := 0; done < len(p); {
		n, err := f.readOnce(ctx, p[done:], offset+int64(done))
		a.progress(n)
		if done += n; done == len(p) && !errors.Is(err, ErrChanged) {
			return nil
		}
		if err == nil && n >= remote.Progress {
			continue // a server that sends less at a time
		}
		if err == nil {
			err = fmt.Errorf("%s: %w: the server sent only %d of %d bytes", f.what(), errBody, n, len(p)-done+n)
		}
		if err := a.backoff(ctx, err); err != nil {
			return f.c.explain(f.name, err)
		}
	}
	return nil
}

// readOnce sends one request, or two if the file has to be resolved, and returns how many bytes came.
func (f *file) readOnce(ctx context.Context, p []byte, offset int64) (int, error) {
	t, resp, err := f.request(ctx, rangeOf(offset, len(p)))
	if errors.Is(err, errCompressed) {
		return 0, f.noRanges("it compresses them")
	}
	if err != nil {
		return 0, err
	}
	defer discard(resp)
	if err := f.checkResponse(t, resp, offset, len(p)); err != nil {
		if errors.Is(err, errBody) {
			f.forget(t) // the hub may direct to another server next time
		}
		return 0, err
	}
	n, err := io.ReadFull(resp.Body, p)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && resp.StatusCode == http.StatusPartialContent &&
		int64(n) == resp.ContentLength:
		return n, nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return n, f.short(resp, p[:n], offset)
	}
	if err == nil && resp.StatusCode == http.StatusOK && offset+int64(n) == f.size {
		err = f.checkEnd(resp)
	}
	return n, err
}

func rangeOf(offset int64, n int) string {
	return "bytes=" + strconv.FormatInt(offset, 10) + "-" + strconv.FormatInt(offset+int64(n)-1, 10)
}

// request sends a request for a range to the file's target, which the first request resolves. Only requests to the
// repository count for the hub's limit, so each file is resolved once, until its signature expires.
func (f *file) request(ctx context.Context, ranges string) (*target, *http.Response, error) {
	f.mu.Lock()
	t := f.target
	if t == nil { // under the lock, so that others wait instead of resolving it too
		resp, found, err := f.resolve(ctx, ranges)
		if err == nil {
			f.target = found
		}
		t = found
		f.mu.Unlock()
		if err != nil || resp != nil {
			return t, resp, err
		}
	} else {
		f.mu.Unlock()
	}
	q := call{what: f.what(), url: t.url, host: f.name.Host, ranges: ranges, named: t.named, step: verdict.HubFile}
	if t.signed {
		q.step = verdict.SignedFile
	}
	resp, last, err := f.c.follow(ctx, q, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			discard(resp)
		}
	}()
	switch {
	case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent:
		return t, resp, nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		err = f.changed("its size is another")
		return nil, nil, err
	}
	if last.url != t.url { // redirected after all
		q.step = verdict.SignedFile
	}
	err = f.c.statusError(q, resp)
	if verdict.Of(q.step, resp.StatusCode) == verdict.FallBack {
		f.forget(t)
		err = fmt.Errorf("%w: %w", errExpired, err)
	}
	return nil, nil, err
}

// forget drops a target, unless another one has replaced it.
func (f *file) forget(t *target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.target == t {
		f.target = nil
	}
}

// resolve asks the repository for the file. A response with the bytes is returned; otherwise only the target.
func (f *file) resolve(ctx context.Context, ranges string) (*http.Response, *target, error) {
	u, err := url.Parse(serviceOf(f.name.Host).file(f.c.endpoint(f.name.Host), f.name, f.commit, f.path))
	if err != nil {
		return nil, nil, err
	}
	q := call{what: f.what(), url: u, host: f.name.Host, ranges: ranges, step: verdict.HubFile}
	resp, q, err := f.c.follow(ctx, q, u)
	if err != nil {
		return nil, nil, err
	}
	to, err := redirect(resp, q)
	if err == nil && to == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		err = f.c.statusError(q, resp)
		if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			err = f.changed("its size is another")
		}
	}
	if err == nil {
		err = f.checkResolved(resp.Header)
	}
	switch {
	case err != nil:
		discard(resp)
		return nil, nil, err
	case to == nil:
		return resp, &target{url: q.url, named: q.named, signed: q.url != u}, nil
	}
	discard(resp)
	return nil, &target{url: to, named: f.c.named(q, to), signed: true}, nil
}

// checkResolved compares what the hub says of the file now with the list of files. Mirrors may say nothing.
func (f *file) checkResolved(h http.Header) error {
	if commit := h.Get("X-Repo-Commit"); commit != "" && isCommit(f.commit) && commit != f.commit {
		return f.changed("the hub answers with another commit")
	}
	// Of a large file that the list does not know as one, the list has git's hash.
	if etag := trimETag(h.Get("X-Linked-Etag")); etag != f.etag && len(etag) == len(f.etag) {
		return f.changed("its etag is another")
	}
	if size := h.Get("X-Linked-Size"); size != "" && size != strconv.FormatInt(f.size, 10) {
		return f.changed("its size is another")
	}
	return nil
}

// changed reports that the file is not the one that the list of files described.
func (f *file) changed(how string) error {
	return fmt.Errorf("%s: %w while it was read: %s; run this again", f.what(), ErrChanged, how)
}
