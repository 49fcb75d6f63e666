package fetch

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/waiting"
)

// errNoRanges means that a server does not serve parts of this blob, or not the requested one.
var errNoRanges = errors.New("no usable response to a range request")

// getRange requests a range of a blob once, and passes the received bytes to write. A response may hold fewer bytes
// without an error: the caller requests the rest. If part is nil, the server may also respond with the whole blob,
// which is then written from its start.
func (d *download) getRange(ctx context.Context, want ingest.Range, part *part,
	write func([]byte, int64) (int, error)) error {
	if d.blob.Size == 0 {
		return nil
	}
	watch := d.timeouts.Watch(ctx, d.fetcher.Tune.Response, 1)
	defer watch.Stop()
	resp, err := d.requestRange(watch.Context(), want, part != nil)
	if err != nil {
		return remote.Interrupted(watch, err)
	}
	defer resp.Body.Close()
	body, sent, err := d.readResponse(resp, want, part)
	if err != nil {
		return remote.Interrupted(watch, err)
	}
	watch.Body(d.fetcher.Tune.Stall)
	end := min(sent.End, want.End)
	if resp.StatusCode == http.StatusOK {
		end = sent.End
	}
	if err := d.copyRange(watch, body, sent, end, write); err != nil {
		return remote.Interrupted(watch, err)
	}
	d.timeouts.Passed()
	return nil
}

func (d *download) requestRange(ctx context.Context, want ingest.Range, always bool) (*http.Response, error) {
	req, err := d.fetcher.Src.Request(ctx, http.MethodGet, d.fetcher.Src.URL("blobs", string(d.blob.Digest)), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept-Encoding", "identity") // the digest is of the bytes as stored
	if always || want.Len() < d.blob.Size {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", want.Start, want.End-1))
	}
	return d.fetcher.Src.Do(req)
}

// readResponse checks a response. It returns the body and the range of the blob that it holds.
func (d *download) readResponse(resp *http.Response, want ingest.Range,
	part *part) (io.Reader, ingest.Range, error) {
	ranged := resp.Request.Header.Get("Range") != ""
	encoding := strings.ToLower(resp.Header.Get("Content-Encoding"))
	encoded := encoding != "" && encoding != "identity"
	whole := ingest.Range{Start: 0, End: d.blob.Size}
	switch {
	case resp.StatusCode == http.StatusPartialContent && ranged:
		sent, total, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || encoded || sent.Start != want.Start || sent.End > d.blob.Size || total >= 0 && total != d.blob.Size ||
			resp.ContentLength >= 0 && resp.ContentLength != sent.Len() || !part.sameContent(resp.Header.Get("ETag")) {
			return nil, whole, errNoRanges
		}
		part.confirmRanges()
		return resp.Body, sent, nil
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && ranged:
		return nil, whole, errNoRanges
	case resp.StatusCode != http.StatusOK:
		return nil, whole, remote.Expect(resp, http.StatusOK)
	case part != nil:
		return nil, whole, errNoRanges
	case resp.ContentLength == d.blob.Size || resp.ContentLength < 0 && !encoded:
		return resp.Body, whole, nil // if the size is right, a wrong Content-Encoding does not matter
	case !encoded:
		return nil, whole, &SizeError{Want: d.blob.Size, Got: resp.ContentLength}
	case encoding == "gzip" || encoding == "x-gzip":
		body := bufio.NewReaderSize(resp.Body, 64<<10)
		if magic, err := body.Peek(2); err == nil && (magic[0] != 0x1f || magic[1] != 0x8b) && resp.ContentLength < 0 {
			return body, whole, nil // not gzip, despite its header
		}
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, whole, fmt.Errorf("%w: %w", remote.ErrInterrupted, err)
		}
		return z, whole, nil
	}
	return nil, whole, fmt.Errorf("the registry sent an unrequested content encoding %q: %w",
		redact.Clip(encoding), remote.ErrUnsupported)
}

// contentRange parses a Content-Range header (RFC 9110, section 14.4). total is -1 if the header does not give it.
func contentRange(value string) (r ingest.Range, total int64, ok bool) {
	rest, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(value)), "bytes ")
	span, all, found := strings.Cut(rest, "/")
	first, last, dash := strings.Cut(span, "-")
	if !ok || !found || !dash {
		return r, 0, false
	}
	start, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	total, err3 := int64(-1), error(nil)
	if all != "*" {
		total, err3 = strconv.ParseInt(all, 10, 64)
	}
	ok = err1 == nil && err2 == nil && err3 == nil && 0 <= start && start <= end && end < 1<<62
	return ingest.Range{Start: start, End: end + 1}, total, ok
}

// blockSize divides the ends of all writes but the last, so that the store can use direct I/O (O_DIRECT).
const blockSize = 4096

// buffers recycles the buffers of requests.
var buffers sync.Pool

// copyRange reads a body that holds the range sent of the blob, and writes its bytes before position end. A body that
// is longer than sent is an error.
func (d *download) copyRange(watch *waiting.Watch, body io.Reader, sent ingest.Range, end int64,
	write func([]byte, int64) (int, error)) error {
	p, _ := buffers.Get().(*[]byte)
	if p == nil || len(*p) != d.fetcher.Tune.Buffer {
		b := make([]byte, d.fetcher.Tune.Buffer)
		p = &b
	}
	defer buffers.Put(p)
	buf, n, at := *p, 0, sent.Start
	for at < end {
		m, err := body.Read(buf[n:min(int64(len(buf)), end-at)])
		watch.Moved(int64(m))
		n += m
		// Collect at least half a buffer per write: large reads bypass the connection's own buffer.
		if n > 0 && (n >= len(buf)/2 || at+int64(n) == end || err != nil) {
			watch.Pause() // the time that the disk takes does not count
			w := n
			if n > blockSize && at+int64(n) < end && err == nil {
				w = int((at+int64(n))&^(blockSize-1) - at)
			}
			if _, err := write(buf[:w], at); err != nil {
				return err
			}
			d.fetcher.Count(int64(w), 0)
			at, n = at+int64(w), copy(buf, buf[w:n])
			d.emit(Event{Kind: Moved, Bytes: d.partial.Have()})
			watch.Resume()
		}
		if err != nil && at < end {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%w after %d of %d bytes: %w", remote.ErrInterrupted, at-sent.Start, sent.Len(), err)
		}
	}
	if end < sent.End {
		return nil
	}
	if m, _ := body.Read(buf[:1]); m > 0 { // reading to the end also lets the connection be reused
		if sent.End == d.blob.Size {
			return &SizeError{Want: d.blob.Size, Got: -1}
		}
		return errNoRanges
	}
	return nil
}
