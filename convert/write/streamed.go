package write

import (
	"context"
	"os"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

// streamTries is how often a tensor is written in pieces before it is written as a whole.
const streamTries = 3

// streamed writes a tensor that is larger than the space for unsent blobs, and sends its pieces meanwhile. It returns
// false if the sink does not take it so.
func (w *writer) streamed(ctx context.Context, t *plan.Tensor, name string) (bool, error) {
	if !w.noKeep || t.Size <= limits.UnsentBlobs {
		return false, nil
	}
	for range streamTries {
		if !w.sink.Streams() {
			return false, nil
		}
		s := stream{w: w, t: t, hashes: newSourceHashes(t)}
		d, note, again, err := w.sendStream(ctx, &s, name)
		if err == nil {
			w.progress.Add(0, 1)
			return true, w.ingest.AddReleased(name, d, t.Size, note, w.sink.Place())
		}
		if !again || ctx.Err() != nil {
			return true, err
		}
		w.progress.Add(-s.read, 0)
	}
	return false, nil
}

// pieceFile is a file with the next bytes of a blob.
type pieceFile struct {
	path  string
	bytes int64
}

// sendStream writes and sends a tensor once.
func (w *writer) sendStream(ctx context.Context, s *stream, name string) (d digest.Digest, note string, again bool,
	err error) {
	var closeAll func()
	if s.coder, closeAll, err = w.newCoder(s.t); err != nil {
		return "", "", false, err
	}
	defer closeAll()
	group, ctx := errgroup.WithContext(ctx)
	pieces := make(chan pieceFile)
	from := s.t.Size
	if at := s.t.Coding.Layout.Offsets; len(at) > 1 {
		from = at[1]
	}
	blob := w.ingest.NewPieces(name, limits.StreamPiece, from, func(path string, bytes int64) error {
		select {
		case pieces <- pieceFile{path, bytes}:
			return nil
		case <-ctx.Done():
			os.Remove(path)
			return context.Cause(ctx)
		}
	})
	s.blob = blob
	group.Go(func() (err error) {
		defer blob.Abort()
		if note, err = s.run(ctx); err != nil {
			return err
		}
		var size int64
		if d, size, err = blob.Finish(ctx); err == nil && size != s.t.Size {
			err = differs(s.t, size)
		}
		if err == nil {
			close(pieces)
		}
		return err
	})
	group.Go(func() (err error) {
		var sent string // the file that the sink has when it asks for the next one
		defer func() { os.Remove(sent) }()
		again, err = w.sink.Stream(ctx, s.t.Size, name,
			func(ctx context.Context) (string, int64, digest.Digest, error) {
				os.Remove(sent)
				select {
				case p, more := <-pieces:
					if !more {
						return "", 0, d, nil
					}
					sent = p.path
					return p.path, p.bytes, "", nil
				case <-ctx.Done():
					return "", 0, "", context.Cause(ctx)
				}
			})
		return err
	})
	err = group.Wait()
	return d, note, again, err
}
