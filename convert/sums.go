package convert

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"sync"
)

// sum is the SHA-256 of a source tensor's bytes, as they lie in its file.
type sum [sha256.Size]byte

// sums collects those of a run, each computed once.
type sums struct {
	mu   sync.Mutex
	list map[sumKey]*sumOnce
}

type sumKey struct{ path, tensor string }

type sumOnce struct {
	sync.Once
	sum sum
	err error
}

// once gives the sum of a weight, made by the first caller.
func (s *sums) once(w weight, compute func() (sum, error)) (sum, error) {
	s.mu.Lock()
	if s.list == nil {
		s.list = map[sumKey]*sumOnce{}
	}
	key := sumKey{w.path, w.Name}
	o := s.list[key]
	if o == nil {
		o = &sumOnce{}
		s.list[key] = o
	}
	s.mu.Unlock()
	o.Do(func() { o.sum, o.err = compute() })
	return o.sum, o.err
}

// lookup gives the sum of a weight that was written.
func (s *sums) lookup(w weight) (sum, error) {
	return s.once(w, func() (sum, error) { return sum{}, fmt.Errorf("tensor %s: %w: it was not read", w.Name, ErrSource) })
}

// sourceHashes hashes a tensor's sources while they are read. Those that are not read from the first byte to the last, in
// order, get no sum here: one that several tensors are cut from, or whose rows change places.
type sourceHashes []*sourceHash

type sourceHash struct {
	hash.Hash
	next, end int64 // elements
}

// newSourceHashes gives nil where nothing can be hashed on the way: quantized checkpoints are read by their own readers, and
// blobs of the store have a digest.
func newSourceHashes(t *Tensor) sourceHashes {
	if t.layout.keep || t.layout.floats {
		return nil
	}
	var out sourceHashes
	for _, s := range t.Sources {
		if s.weight.store != nil {
			return nil
		}
		out = append(out, &sourceHash{Hash: sha256.New(), end: Tensor{Shape: s.Shape}.params()})
	}
	return out
}

var nothingHashed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// add hashes a batch, which lies at the beginning of a slab, beside what else is done with it: the channel closes when it is
// done. The caller waits for that before it adds another.
func (h sourceHashes) add(batch []stretch, slab []byte, width int64) <-chan struct{} {
	if h == nil {
		return nothingHashed
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, s := range batch {
			n := s.count * width
			if at := h[s.source]; s.begin == at.next {
				at.Write(slab[:n])
				at.next += s.count
			} else {
				at.next = -1 // no stretch begins there
			}
			slab = slab[n:]
		}
	}()
	return done
}

// sumsOf completes the sums of a tensor's sources, where needed by reading them again: now, as the system still has them in
// memory. The note keeps them for a run that goes on from here.
func (w *writer) sumsOf(ctx context.Context, t *Tensor, h sourceHashes) (note string, err error) {
	var all []byte
	for i, s := range t.Sources {
		for _, f := range s.weight.files() {
			if f.store != nil {
				continue
			}
			one, err := w.sums.once(f, func() (sum, error) {
				if h != nil && h[i].next == h[i].end {
					return sum(h[i].Sum(nil)), nil
				}
				return w.readSum(ctx, f)
			})
			if err != nil {
				return "", err
			}
			all = append(all, one[:]...)
		}
	}
	return base64.RawStdEncoding.EncodeToString(all), nil
}

// sumsOfFinished takes the sums from the note that an earlier run left, else from the sources.
func (w *writer) sumsOfFinished(ctx context.Context, t *Tensor, name string) error {
	all, _ := base64.RawStdEncoding.DecodeString(w.ingest.Note(name))
	var files []weight
	for _, s := range t.Sources {
		for _, f := range s.weight.files() {
			if f.store == nil {
				files = append(files, f)
			}
		}
	}
	if len(all) != len(files)*sha256.Size {
		_, err := w.sumsOf(ctx, t, nil)
		return err
	}
	for i, f := range files {
		if _, err := w.sums.once(f, func() (sum, error) { return sum(all[i*sha256.Size:][:sha256.Size]), nil }); err != nil {
			return err
		}
	}
	return nil
}

// readSum reads a source for its sum alone.
func (w *writer) readSum(ctx context.Context, f weight) (sum, error) {
	r, closeAll, err := openAll([]Source{f.describe()})
	if err != nil {
		return sum{}, err
	}
	defer closeAll()
	slab, err := w.slabs.get(ctx)
	if err != nil {
		return sum{}, err
	}
	defer w.slabs.put(slab)
	h := sha256.New()
	for at, end := int64(0), f.describe().size(); at < end; {
		if err := ctx.Err(); err != nil {
			return sum{}, err
		}
		p := slab[:min(int64(len(slab)), end-at)]
		if err := readFull(r[0], p, at); err != nil {
			return sum{}, fmt.Errorf("%s: tensor %s: %w", f.path, f.Name, err)
		}
		h.Write(p)
		at += int64(len(p))
	}
	return sum(h.Sum(nil)), f.unchanged()
}
