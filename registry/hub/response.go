package hub

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/filekind"
)

// trimETag removes what surrounds an entity tag (RFC 9110, 8.8.3), and its weakness, which proxies add and remove.
func trimETag(s string) string {
	s = strings.TrimSpace(s)
	return strings.Trim(strings.TrimPrefix(strings.TrimPrefix(s, "W/"), "w/"), `"`)
}

// checkResponse checks that a response has the requested range of the expected file. If the server sent the whole file
// instead, which may be short enough, the body then begins at the range.
func (f *file) checkResponse(t *target, resp *http.Response, offset int64, n int) error {
	whole := resp.StatusCode == http.StatusOK
	if whole && resp.ContentLength >= 0 && resp.ContentLength != f.size {
		return f.instead(resp) // before its etag is taken for the file's
	}
	if err := f.checkETag(t, resp); err != nil {
		return err
	}
	if whole {
		if f.size > maxSkipped && offset+int64(n) != f.size || offset > limits.HubDocument {
			return f.noRanges("it sends the whole file")
		}
		if _, err := io.CopyN(io.Discard, resp.Body, offset); err != nil {
			return fmt.Errorf("%s: %w", f.what(), noEOF(err))
		}
		return nil
	}
	var first, last int64
	rest, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes ")
	span, total, okTotal := strings.Cut(rest, "/")
	_, err := fmt.Sscanf(span, "%d-%d", &first, &last)
	switch {
	case !ok || !okTotal || err != nil || first != offset || last >= offset+int64(n):
		return f.noRanges("it answers with another range")
	case total != "*" && total != strconv.FormatInt(f.size, 10):
		return f.changed("its size is another")
	}
	return nil
}

// maxSkipped bounds a file of which any part may be taken from the whole.
const maxSkipped = 8 << 20

// checkETag compares the entity tags of a target's responses. Servers that share their work may have different ones, so
// they do not matter if all bytes are compared with their hash before they are used.
func (f *file) checkETag(t *target, resp *http.Response) error {
	etag := trimETag(resp.Header.Get("ETag"))
	if etag == "" || f.c.opts.Keep && newContent(f.etag, f.size) != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.etag != "" && t.etag != etag {
		return fmt.Errorf("%w; if that does not help, use --keep-source, which compares whole files with their hashes",
			f.changed("its etag is another"))
	}
	t.etag = etag
	return nil
}

// noRanges reports a server from which parts of a file cannot be read.
func (f *file) noRanges(how string) error {
	remedy := "use --keep-source, which downloads whole files, or another mirror"
	if f.name.Host == ModelScope {
		remedy = fmt.Sprintf("download it with `modelscope download --model %s --local_dir DIR`, and use DIR",
			f.name.Repository)
	}
	return fmt.Errorf("%s: %w (%s), so tensors cannot be read one by one; %s", f.what(), ErrNoRanges, how, remedy)
}

// instead describes a whole response whose size is not the file's: another file, or an answer in its place, which may
// pass.
func (f *file) instead(resp *http.Response) error {
	head, err := io.ReadAll(io.LimitReader(resp.Body, filekind.HeadSize))
	if err != nil {
		return err
	}
	if err := f.foreign(head, resp.ContentLength); err != nil {
		return err
	}
	return f.changed("its size is another")
}

// foreign reports a body that is no file of a model: an empty one, a page, a message. size is -1 if it is not known.
func (f *file) foreign(head []byte, size int64) error {
	found := filekind.Of(head, max(size, int64(len(head))))
	text := errorText(head)
	switch {
	case found.Kind == filekind.Pointer:
		return fmt.Errorf("%s: the server sends %s instead of the file; use another mirror, or the hub itself",
			f.what(), found)
	case text != "":
		return fmt.Errorf("%s: %w: the server says: %s", f.what(), errBody, f.c.said(text))
	case found.Stray(), found.Kind == filekind.JSON && path.Ext(f.path) != ".json":
		return fmt.Errorf("%s: %w: it is %s", f.what(), errBody, found)
	}
	return nil
}

// short describes a body that ended early, after these bytes of it.
func (f *file) short(resp *http.Response, p []byte, offset int64) error {
	if resp.ContentLength == 0 {
		return fmt.Errorf("%s: %w: it is empty", f.what(), errBody)
	}
	if resp.StatusCode == http.StatusOK && offset == 0 {
		if err := f.foreign(p, int64(len(p))); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", f.what(), io.ErrUnexpectedEOF)
}

// checkEnd checks that a whole file ends where it should.
func (f *file) checkEnd(resp *http.Response) error {
	if n, err := io.ReadFull(resp.Body, make([]byte, 1)); n > 0 {
		return f.changed("its size is another")
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", f.what(), err)
	}
	return nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
