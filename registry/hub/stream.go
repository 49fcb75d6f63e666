package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// stream copies a file from an offset to its end, from a server that sends whole files only. What was copied before is
// skipped, in each attempt.
func (f *file) stream(ctx context.Context, w io.Writer, offset int64) error {
	a := &attempts{c: f.c, what: f.what(), host: f.name.Host}
	for offset < f.size {
		n, err := f.streamOnce(ctx, w, offset)
		a.progress(int(n))
		offset += n
		if err == nil {
			continue
		}
		if err := a.backoff(ctx, err); err != nil {
			return f.c.explain(f.name, err)
		}
	}
	return nil
}

func (f *file) streamOnce(ctx context.Context, w io.Writer, offset int64) (int64, error) {
	t, resp, err := f.request(ctx, "")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() // a whole file is not drained
	switch {
	case resp.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("%s: %w: it sends a part that nobody asked for", f.what(), ErrNoRanges)
	case resp.ContentLength >= 0 && resp.ContentLength != f.size:
		return 0, f.instead(resp)
	}
	if err := f.checkETag(t, resp); err != nil {
		return 0, err
	}
	if _, err := io.CopyN(io.Discard, resp.Body, offset); err != nil {
		return 0, fmt.Errorf("%s: %w", f.what(), noEOF(err))
	}
	n, err := io.CopyN(w, resp.Body, f.size-offset)
	if err != nil {
		return n, fmt.Errorf("%s: %w", f.what(), noEOF(err))
	}
	return n, f.checkEnd(resp)
}
