package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/models/shard"
	"github.com/opencontainers/go-digest"
)

// Connections is the number of connections to rank 0 that a fetch uses.
const Connections = 4

// maxRanges is how many ranges a request names.
const maxRanges = 512

// Source is rank 0's store.
type Source struct{ client *http.Client }

// NewSource returns a source whose connections dial gives. It dials at most Connections times.
func NewSource(dial func(ctx context.Context) (net.Conn, error)) *Source {
	return &Source{&http.Client{Transport: &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxConnsPerHost: Connections, MaxIdleConnsPerHost: Connections, DisableCompression: true,
	}}}
}

// Close closes the idle connections.
func (s *Source) Close() { s.client.CloseIdleConnections() }

// get asks for a manifest or a blob, or for ranges of it.
func (s *Source) get(ctx context.Context, kind string, d digest.Digest, ranges []shard.Range) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://rank0"+repository+kind+"/"+string(d), nil)
	if err != nil {
		return nil, err
	}
	want := http.StatusOK
	if ranges != nil {
		var list strings.Builder
		for i, b := range ranges {
			if i > 0 {
				list.WriteByte(',')
			}
			fmt.Fprintf(&list, "%d-%d", b.Begin, b.End-1)
		}
		r.Header.Set("Range", "bytes="+list.String())
		want = http.StatusPartialContent
	}
	response, err := s.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("fetch %s from rank 0: %w", d, err)
	}
	if response.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		response.Body.Close()
		return nil, fmt.Errorf("fetch %s from rank 0: %s: %s", d, response.Status, manifest.Clip(string(text)))
	}
	return response, nil
}

// bytes returns a small manifest or blob, which has its digest.
func (s *Source) bytes(ctx context.Context, kind string, d digest.Digest, most int64) ([]byte, error) {
	response, err := s.get(ctx, kind, d, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("fetch %s from rank 0: %w", d, err)
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes: %w", d, most, manifest.ErrTooLarge)
	}
	if got := digest.FromBytes(b); got != d {
		return nil, manifest.Corrupt(d, got)
	}
	return b, nil
}

// ranges calls each for the contents of ranges of a blob of the given size, in order.
func (s *Source) ranges(
	ctx context.Context, d digest.Digest, size int64, all []shard.Range, each func(r shard.Range, content io.Reader) error,
) error {
	for len(all) > 0 {
		some := all[:min(len(all), maxRanges)]
		all = all[len(some):]
		if err := s.someRanges(ctx, d, size, some, each); err != nil {
			return fmt.Errorf("fetch ranges of %s from rank 0: %w", d, err)
		}
	}
	return nil
}

func (s *Source) someRanges(
	ctx context.Context, d digest.Digest, size int64, some []shard.Range,
	each func(r shard.Range, content io.Reader) error,
) error {
	response, err := s.get(ctx, "blobs", d, some)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	next := func(header string, body io.Reader) error {
		if len(some) == 0 {
			return errors.New("there are more ranges than were asked for")
		}
		r := some[0]
		some = some[1:]
		if want := fmt.Sprintf("bytes %d-%d/%d", r.Begin, r.End-1, size); header != want {
			return fmt.Errorf("got the range %q instead of %q", manifest.Clip(header), want)
		}
		return each(r, &exactReader{body, r.Len()})
	}
	kind, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/byteranges" {
		err := next(response.Header.Get("Content-Range"), response.Body)
		if err == nil && len(some) > 0 {
			err = fmt.Errorf("%d ranges are missing", len(some))
		}
		return err
	}
	parts := multipart.NewReader(response.Body, parameters["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) && len(some) == 0 {
			_, err = io.Copy(io.Discard, response.Body) // or the connection could not be used again
			return err
		}
		if err != nil {
			return noEOF(err)
		}
		if err := next(part.Header.Get("Content-Range"), part); err != nil {
			return err
		}
	}
}

// exactReader is a reader of left bytes. An earlier end is an error.
type exactReader struct {
	r    io.Reader
	left int64
}

func (e *exactReader) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(b[:min(int64(len(b)), e.left)])
	if e.left -= int64(n); e.left > 0 {
		err = noEOF(err)
	} else if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// headReader reads a blob's beginning at once and the rest where it is asked for, for readers of headers.
type headReader struct {
	ctx  context.Context
	from *Source
	d    digest.Digest
	size int64
	head []byte
}

// headBytes is more than the header of a blob with one tensor takes.
const headBytes = 16 << 10

func (h *headReader) ReadAt(b []byte, at int64) (int, error) {
	if h.head == nil {
		r := shard.Range{End: min(h.size, headBytes)}
		err := h.from.ranges(h.ctx, h.d, h.size, []shard.Range{r}, func(_ shard.Range, content io.Reader) (err error) {
			h.head, err = io.ReadAll(content)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	if end := at + int64(len(b)); end <= int64(len(h.head)) {
		return copy(b, h.head[at:end]), nil
	}
	n := 0
	r := shard.Range{Begin: at, End: min(h.size, at+int64(len(b)))}
	if r.Len() <= 0 {
		return 0, io.EOF
	}
	err := h.from.ranges(h.ctx, h.d, h.size, []shard.Range{r}, func(_ shard.Range, content io.Reader) (err error) {
		n, err = io.ReadFull(content, b[:r.Len()])
		return err
	})
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}
