package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/ingotml/ingot/registry/address"
)

// file is a file of a repository that is read over HTTP. It is safe for concurrent use.
type file struct {
	entry
	c      *Client
	name   Name
	commit string

	mu     sync.Mutex
	target *target // where the bytes are; nil = to be resolved
}

// target is where a file's bytes are: a signed address, or that of the repository itself.
type target struct {
	url   *url.URL
	named address.Class
	etag  string // of the first response; another one later is another file
}

// what names the file in errors.
func (f *file) what() string { return f.name.String() + "/" + f.path }

// readRange fills p with the bytes at an offset. It resumes after failures.
func (f *file) readRange(ctx context.Context, p []byte, offset int64) error {
	a := &attempts{c: f.c, what: f.what()}
	for done := 0; done < len(p); {
		n, err := f.readOnce(ctx, p[done:], offset+int64(done))
		if n > 0 {
			a.progress()
		}
		if done += n; done == len(p) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%s: %w", f.what(), io.ErrUnexpectedEOF)
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
	if err != nil {
		return 0, err
	}
	defer discard(resp)
	if err := f.checkResponse(t, resp, offset, len(p)); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(resp.Body, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%s: %w", f.what(), io.ErrUnexpectedEOF) // a short body
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
	q := call{what: f.what(), url: t.url, host: f.name.Host, ranges: ranges, named: t.named}
	resp, _, err := f.c.follow(ctx, q, nil)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent:
		return t, resp, nil
	case resp.StatusCode == http.StatusForbidden && !f.isHome(t.url):
		discard(resp)
		f.forget(t)
		return nil, nil, fmt.Errorf("%s: %w", f.what(), errExpired)
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		discard(resp)
		return nil, nil, f.changed("its size is another")
	}
	discard(resp)
	return nil, nil, statusError(f.what(), resp)
}

// forget drops a target, unless another one has replaced it.
func (f *file) forget(t *target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.target == t {
		f.target = nil
	}
}

// isHome reports whether an address is of the hub itself.
func (f *file) isHome(u *url.URL) bool {
	endpoint, _ := f.c.endpoint(f.name.Host)
	home, err := url.Parse(endpoint)
	return err == nil && origin(home) == origin(u)
}

// resolve asks the repository for the file. A response with the bytes is returned; otherwise only the target.
func (f *file) resolve(ctx context.Context, ranges string) (*http.Response, *target, error) {
	endpoint, _ := f.c.endpoint(f.name.Host)
	u, err := url.Parse(serviceOf(f.name.Host).file(endpoint, f.name, f.commit, f.path))
	if err != nil {
		return nil, nil, err
	}
	q := call{what: f.what(), url: u, host: f.name.Host, ranges: ranges}
	resp, q, err := f.c.follow(ctx, q, u)
	if err != nil {
		return nil, nil, err
	}
	to, err := redirect(resp, q)
	if err == nil && to == nil && resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		err = statusError(f.what(), resp)
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
		return resp, &target{url: q.url}, nil
	}
	discard(resp)
	return nil, &target{url: to, named: f.c.named(q, to)}, nil
}

// checkResolved compares what the hub says of the file now with the list of files. Mirrors may say nothing.
func (f *file) checkResolved(h http.Header) error {
	if commit := h.Get("X-Repo-Commit"); commit != "" && isCommit(f.commit) && commit != f.commit {
		return f.changed("the hub answers with another commit")
	}
	if etag := trimETag(h.Get("X-Linked-Etag")); etag != "" && f.etag != "" && etag != f.etag {
		return f.changed("its etag is another")
	}
	if size := h.Get("X-Linked-Size"); size != "" && size != strconv.FormatInt(f.size, 10) {
		return f.changed("its size is another")
	}
	return nil
}

// trimETag removes what surrounds an entity tag (RFC 9110, 8.8.3).
func trimETag(s string) string { return strings.Trim(strings.TrimPrefix(s, "W/"), `"`) }

// checkResponse checks that a response has the requested range of the expected file.
func (f *file) checkResponse(t *target, resp *http.Response, offset int64, n int) error {
	if etag := resp.Header.Get("ETag"); etag != "" {
		f.mu.Lock()
		same := t.etag == "" || t.etag == etag
		t.etag = etag
		f.mu.Unlock()
		if !same {
			return f.changed("its etag is another")
		}
	}
	if resp.StatusCode == http.StatusOK {
		if offset != 0 || resp.ContentLength >= 0 && resp.ContentLength > max(f.size, int64(n)) {
			return fmt.Errorf("%s: %w, so tensors cannot be read one by one; use --keep-source, or another mirror",
				f.what(), ErrNoRanges)
		}
		if resp.ContentLength >= 0 && resp.ContentLength != f.size {
			return f.changed("its size is another")
		}
		return nil
	}
	var first, last int64
	rest, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes ")
	span, total, okTotal := strings.Cut(rest, "/")
	_, err := fmt.Sscanf(span, "%d-%d", &first, &last)
	switch {
	case !ok || !okTotal || err != nil || first != offset || last >= offset+int64(n):
		return fmt.Errorf("%s: %w: it answers with another range", f.what(), ErrNoRanges)
	case total != "*" && total != strconv.FormatInt(f.size, 10):
		return f.changed("its size is another")
	}
	return nil
}

// changed reports that the file is not the one that the list of files described.
func (f *file) changed(how string) error {
	return fmt.Errorf("%s: %w while it was read: %s; run this again", f.what(), ErrChanged, how)
}
