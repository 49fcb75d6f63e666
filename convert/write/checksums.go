package write

import (
	"context"
	"encoding/base64"
	"fmt"
	"sync"

	"github.com/ingotml/ingot/convert/internal/blake3"
	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
)

// ChecksumSize is the size of a source tensor's checksum in bytes.
const ChecksumSize = blake3.Size

// checksum is the BLAKE3 hash of a source tensor's bytes in its file, in its default length; zero if it was not
// computed. Nothing but the provenance record reads it, so it need not be SHA-256, which took a third of the processor
// time of a conversion. See https://github.com/BLAKE3-team/BLAKE3-specs.
type checksum [ChecksumSize]byte

// checksums holds the checksums of a run. Each is computed once.
type checksums struct {
	mu   sync.Mutex
	list map[checksumKey]*checksumOnce
}

type checksumKey struct{ path, tensor string }

type checksumOnce struct {
	sync.Once
	sum checksum
	err error
}

// once returns a weight's checksum. The first caller computes it.
func (s *checksums) once(w source.Tensor, compute func() (checksum, error)) (checksum, error) {
	s.mu.Lock()
	if s.list == nil {
		s.list = map[checksumKey]*checksumOnce{}
	}
	key := checksumKey{w.Path, w.Name}
	o := s.list[key]
	if o == nil {
		o = &checksumOnce{}
		s.list[key] = o
	}
	s.mu.Unlock()
	o.Do(func() { o.sum, o.err = compute() })
	return o.sum, o.err
}

// lookup returns the checksum of a weight that was written.
func (s *checksums) lookup(w source.Tensor) (checksum, error) {
	return s.once(w, func() (checksum, error) {
		return checksum{}, fmt.Errorf("tensor %s: %w: it was not read", w.Name, source.ErrSource)
	})
}

// isBlob reports whether a tensor is a blob in the store, which has a digest.
func isBlob(t source.Tensor) bool {
	_, ok := t.Layer()
	return ok
}

// sourceHashes hashes a tensor's sources while they are read. It only covers sources that are read completely and in
// order, not those that several tensors share or whose rows are reordered.
type sourceHashes []*sourceHash

type sourceHash struct {
	hasher    *blake3.Hasher // between the first byte and the last: a tensor may have hundreds of sources
	next, end int64          // elements
	sum       checksum       // if next is end
}

// add hashes the next elements.
func (h *sourceHash) add(p []byte, count int64) {
	if h.hasher == nil {
		h.hasher = blake3.New()
	}
	_, _ = h.hasher.Write(p) // never fails
	if h.next += count; h.next == h.end {
		h.sum, h.hasher = h.hasher.Sum(), nil
	}
}

// newSourceHashes returns nil if there is nothing to hash: quantized checkpoints have their own readers, and blobs in
// the store have a digest.
func newSourceHashes(t *plan.Tensor) sourceHashes {
	if t.Coding.Keep || t.Coding.Floats || t.Match.Transposed {
		return nil
	}
	var out sourceHashes
	for _, s := range t.Sources {
		if isBlob(*s.Tensor) {
			return nil
		}
		h := &sourceHash{end: plan.Tensor{Shape: s.Shape}.Params()}
		if h.end == 0 {
			h.sum = blake3.New().Sum()
		}
		out = append(out, h)
	}
	return out
}

// add hashes a batch, stored at the beginning of a slab. Batches are added in order.
func (h sourceHashes) add(batch []sourceRange, slab []byte, width int64) {
	if h == nil {
		return
	}
	for _, s := range batch {
		n := s.count * width
		if at := h[s.source]; s.begin == at.next {
			at.add(slab[:n], s.count)
		} else {
			at.next, at.hasher = -1, nil // read out of order
		}
		slab = slab[n:]
	}
}

// computeChecksums computes the checksums of a tensor's sources. It reads sources again that were not hashed while they
// were written; they are still in the page cache. The note stores the checksums for a run that resumes this one.
func (w *writer) computeChecksums(ctx context.Context, t *plan.Tensor, h sourceHashes) (note string, err error) {
	var all []byte
	for i, s := range t.Sources {
		for _, f := range s.Tensor.Parts() {
			if isBlob(f) {
				continue
			}
			one, err := w.checksums.once(f, func() (checksum, error) {
				if h != nil && h[i].next == h[i].end {
					return h[i].sum, nil
				}
				if f.Remote() { // its file's hash has to do: reading it again means another download
					return checksum{}, nil
				}
				return w.readChecksum(ctx, f)
			})
			if err != nil {
				return "", err
			}
			all = append(all, one[:]...)
		}
	}
	return base64.RawStdEncoding.EncodeToString(all), nil
}

// restoreChecksums restores the checksums from the note of an interrupted run, or else computes them from the sources.
func (w *writer) restoreChecksums(ctx context.Context, t *plan.Tensor, name string) error {
	all, _ := base64.RawStdEncoding.DecodeString(w.ingest.Note(name)) // a damaged note has too few
	var files []source.Tensor
	for _, s := range t.Sources {
		for _, f := range s.Tensor.Parts() {
			if !isBlob(f) {
				files = append(files, f)
			}
		}
	}
	if len(all) != len(files)*ChecksumSize {
		_, err := w.computeChecksums(ctx, t, nil)
		return err
	}
	for i, f := range files {
		if _, err := w.checksums.once(f,
			func() (checksum, error) { return checksum(all[i*ChecksumSize:][:ChecksumSize]), nil }); err != nil {
			return err
		}
	}
	return nil
}

// readChecksum reads a source only for its checksum.
func (w *writer) readChecksum(ctx context.Context, f source.Tensor) (checksum, error) {
	r, closeAll, err := openAll(f)
	if err != nil {
		return checksum{}, err
	}
	defer closeAll()
	slab, err := w.slabs.get(ctx)
	if err != nil {
		return checksum{}, err
	}
	defer w.slabs.put(slab)
	h := blake3.New()
	for at, end := int64(0), f.Size(); at < end; {
		if err := ctx.Err(); err != nil {
			return checksum{}, err
		}
		p := slab[:min(int64(len(slab)), end-at)]
		if err := source.ReadFull(r[0], p, at); err != nil {
			return checksum{}, fmt.Errorf("%s: tensor %s: %w", f.Path, f.Name, err)
		}
		_, _ = h.Write(p) // never fails
		at += int64(len(p))
	}
	return h.Sum(), f.Unchanged()
}
