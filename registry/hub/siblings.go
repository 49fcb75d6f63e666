package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/registry/verdict"
	"golang.org/x/sync/errgroup"
)

// unknownSize is the size of a file that the hub lists without one, until [Client.measure] finds it. invalidSize is a
// negative one.
const (
	unknownSize = -1
	invalidSize = -2
)

// measuring is the number of files whose sizes are asked for at a time.
const measuring = 8

// sibling is a file in what the hub says of a revision. Without blobs=true, or on other hubs, there is only a name.
type sibling struct {
	RFilename, BlobID string
	Size              *int64
	LFS               *lfs
}

// lfs describes a large file. /tree/ has the hash as oid, siblings have it as sha256.
type lfs struct {
	OID, SHA256 string
	Size        *int64
}

// git's hash of a file without bytes, and its SHA-256.
const (
	emptyBlob   = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
	emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// newEntry returns an entry for what a hub lists. A size of 0 that contradicts the hash is none.
func newEntry(path, oid string, size *int64, large *lfs) entry {
	e := entry{path: path, etag: oid, size: unknownSize}
	if large != nil {
		e.sha256 = strings.TrimPrefix(large.OID+large.SHA256, "sha256:")
		e.etag = e.sha256
		if large.Size != nil {
			size = large.Size
		}
	}
	if size != nil && *size < 0 {
		e.size = invalidSize
	} else if size != nil && (*size != 0 || e.etag == "" || e.etag == emptyBlob || e.etag == emptySHA256) {
		e.size = *size
	}
	return e
}

// siblings lists the files of a commit without /tree/, which look-alikes of the hub may lack.
func (huggingFace) siblings(ctx context.Context, c *Client, n Name, commit string) ([]entry, error) {
	var about revisionInfo
	if err := c.about(ctx, n, commit, "?blobs=true", &about); err != nil {
		if n.Revision != "" || !fallBack(err) {
			return nil, err
		}
		if err := c.about(ctx, n, "", "?blobs=true", &about); err != nil {
			return nil, err
		}
	}
	switch {
	case about.SHA != commit:
		return nil, fmt.Errorf("%s: %w: the hub answers with another commit", n, ErrChanged)
	case len(about.Siblings) == 0:
		return nil, fmt.Errorf("%s: the hub lists no files", n)
	case len(about.Siblings) > limits.HubFiles:
		return nil, fmt.Errorf("%s: the repository has more than %d files", n, limits.HubFiles)
	}
	var out []entry
	for _, s := range about.Siblings {
		out = append(out, newEntry(s.RFilename, s.BlobID, s.Size, s.LFS))
	}
	return out, nil
}

// measure finds the sizes that a list lacks.
func (c *Client) measure(ctx context.Context, n Name, commit string, list []entry) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(measuring)
	for i := range list {
		if list[i].size == unknownSize {
			group.Go(func() error { return c.measureFile(ctx, n, commit, &list[i]) })
		}
	}
	return group.Wait()
}

// measureFile asks for a file's header with HEAD, or for its first byte if HEAD does not say the size.
func (c *Client) measureFile(ctx context.Context, n Name, commit string, e *entry) error {
	u, err := url.Parse(serviceOf(n.Host).file(c.endpoint(n.Host), n, commit, e.path))
	if err != nil {
		return err
	}
	n.File = ""
	q := call{what: n.String() + "/" + e.path, url: u, host: n.Host, step: verdict.HubFile}
	a := &attempts{c: c, what: q.what, host: q.host}
	for {
		err := c.measureOnce(ctx, q, e)
		if err == nil {
			return nil
		}
		if err := a.backoff(ctx, err); err != nil {
			return err
		}
	}
}

func (c *Client) measureOnce(ctx context.Context, q call, e *entry) error {
	head := q
	head.head = true
	resp, _, err := c.follow(ctx, head, q.url)
	if err != nil {
		return err
	}
	discard(resp)
	if resp.StatusCode < http.StatusBadRequest {
		e.describe(resp.Header)
		if size := sizeOf(resp); size > 0 && resp.StatusCode == http.StatusOK && e.size == unknownSize {
			e.size = size // 0 may only mean that the response to HEAD has no body
		}
		if e.size != unknownSize {
			return nil
		}
	}
	q.ranges = "bytes=0-0" // a hub or a store that does not answer HEAD
	resp, _, err = c.follow(ctx, q, nil)
	if err != nil {
		return err
	}
	defer discard(resp)
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		e.size = sizeOf(resp)
	default:
		return c.statusError(q, resp)
	}
	if e.size == unknownSize {
		return errors.New(q.what + ": the hub does not say how large the file is")
	}
	return nil
}

// describe takes what the hub says of a file in a header. Other entity tags than its own may be any text.
func (e *entry) describe(h http.Header) {
	if size, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64); err == nil && size >= 0 {
		e.size = size
	}
	if etag := trimETag(h.Get("X-Linked-Etag")); e.etag == "" && len(etag) == 64 && isHex(etag) {
		e.etag, e.sha256 = etag, etag
	}
}

// sizeOf returns the size of a whole file, from the response to a request for any part of it.
func sizeOf(resp *http.Response) int64 {
	if resp.StatusCode == http.StatusOK {
		if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
			return unknownSize
		}
		return max(resp.ContentLength, unknownSize)
	}
	_, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil || size < 0 {
		return unknownSize
	}
	return size
}
