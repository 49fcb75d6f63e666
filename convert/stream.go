package convert

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
)

// tensor streams a tensor into its blob, batch by batch: read, coded, hashed and written by one goroutine, which then has no
// reason to sleep. Processors that have no tensor of their own code batches ahead for others, as far as there are slabs.
// Packed elements are hashed as they come; scales and biases lie after all of them, and are written ahead.
func (w *writer) tensor(ctx context.Context, t *Tensor) error {
	if t.Digest != "" {
		w.report(t.sourceBytes(), 1)
		return nil
	}
	name := blobName(manifest.KindTensor, t.Name)
	if w.finished(name, t.sourceBytes(), 1) {
		return w.sumsOfFinished(ctx, t, name)
	}
	coder := coder{layout: t.layout, add: t.match.Add}
	if t.layout.keep || t.layout.floats {
		coder.coded, coder.row = openCoded(t.Sources), t.Sources[0].Shape[len(t.Sources[0].Shape)-1]
	} else {
		readers, closeAll, err := openAll(t.Sources)
		if err != nil {
			return err
		}
		defer closeAll()
		coder.sources = readers
	}
	blob, err := w.ingest.NewBlob(name)
	if err != nil {
		return err
	}
	s := stream{w: w, t: t, blob: blob, coder: coder, ahead: t.layout.offsets, hashes: newSourceHashes(t)}
	err = s.run(ctx)
	var note string
	if err == nil {
		note, err = w.sumsOf(ctx, t, s.hashes)
	}
	if err != nil {
		blob.Abort()
		return err
	}
	blob.Note(note)
	w.seal(ctx, "tensor "+t.Name, blob, func(size int64) error {
		if size != t.Size {
			return fmt.Errorf("%w: the blob has %d bytes, not %d as planned", ErrSource, size, t.Size)
		}
		w.report(0, 1)
		return nil
	})
	return nil
}

// openAll opens the sources of a tensor.
func openAll(list []Source) (readers []io.ReaderAt, closeAll func(), err error) {
	var closers []func() error
	closeAll = func() {
		for _, c := range closers {
			_ = c()
		}
	}
	for _, s := range list {
		r, c, err := s.weight.open()
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		readers, closers = append(readers, r), append(closers, c)
	}
	return readers, closeAll, nil
}

// stream is a tensor that is being written.
type stream struct {
	w       *writer
	t       *Tensor
	blob    *manifest.IngestBlob
	coder   coder
	ahead   []int64 // where the next piece of each array goes
	pending []*job  // in order
	done    int64   // elements written
	told    int64   // bytes of the sources that were reported
	hashes  sourceHashes
}

// job is a batch on its way.
type job struct {
	slab   []byte
	batch  []stretch
	result quantize.Blocks
	err    error
	ready  chan struct{} // closed when it is coded
}

func (j *job) done() bool {
	select {
	case <-j.ready:
		return true
	default:
		return false
	}
}

func (s *stream) run(ctx context.Context) error {
	defer s.abandon()
	s.ahead = append([]int64{}, s.ahead...)
	header, _, err := s.t.layout.header()
	if err != nil {
		return err
	}
	if _, err := s.blob.Write(header); err != nil {
		return err
	}
	for batch := range cut(s.t.match.Pieces(), s.coder.batch()) {
		if err := s.start(ctx, batch); err != nil {
			return err
		}
		for len(s.pending) > 0 && s.pending[0].done() {
			if err := s.finish(ctx); err != nil {
				return err
			}
		}
	}
	for len(s.pending) > 0 {
		if err := s.finish(ctx); err != nil {
			return err
		}
	}
	if s.done != s.t.params() {
		return fmt.Errorf("%w: %d of its %d elements are there", ErrSource, s.done, s.t.params())
	}
	if l := s.t.layout; l.global != 0 {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(l.global))
		if _, err := s.blob.WriteAt(b[:], l.offsets[len(l.offsets)-1]); err != nil {
			return err
		}
	}
	for _, source := range s.t.Sources {
		if err := source.weight.unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// start codes a batch, or has it coded by a processor that is idle. While there is no slab it finishes earlier ones: a
// stream that has slabs never waits for others, so they cannot wait for each other.
func (s *stream) start(ctx context.Context, batch []stretch) error {
	slab, ok := s.w.slabs.try()
	for !ok && len(s.pending) > 0 {
		if err := s.finish(ctx); err != nil {
			return err
		}
		slab, ok = s.w.slabs.try()
	}
	if !ok {
		var err error
		if slab, err = s.w.slabs.get(ctx); err != nil {
			return err
		}
	}
	j := &job{slab: slab, batch: batch, ready: make(chan struct{})}
	s.pending = append(s.pending, j)
	code := func() {
		defer close(j.ready)
		j.result, j.err = s.coder.run(j.slab, j.batch)
	}
	if s.w.idle.TryAcquire(1) {
		go func() {
			defer s.w.idle.Release(1)
			code()
		}()
	} else {
		code()
	}
	return nil
}

// finish writes the oldest batch.
func (s *stream) finish(ctx context.Context) error {
	j := s.pending[0]
	s.pending = s.pending[1:]
	<-j.ready
	defer s.w.slabs.put(j.slab)
	if err := ctx.Err(); err != nil {
		return err
	}
	if j.err != nil {
		return where(j.err, j.batch, *s.t)
	}
	hashed := s.hashes.add(j.batch, j.slab, s.t.layout.width)
	defer func() { <-hashed }() // before the slab goes back
	if _, err := s.blob.Write(j.result.Packed); err != nil {
		return err
	}
	for i, piece := range [][]byte{j.result.Scales, j.result.Biases} {
		if len(piece) == 0 {
			continue
		}
		if _, err := s.blob.WriteAt(piece, s.ahead[1+i]); err != nil {
			return err
		}
		s.ahead[1+i] += int64(len(piece))
	}
	n := countOf(j.batch)
	s.done += n
	read := n * s.t.layout.width
	if s.t.layout.keep || s.t.layout.floats {
		read = int64(float64(s.t.sourceBytes())*float64(s.done)/float64(s.t.params())) - s.told
	}
	s.told += read
	s.w.report(read, 0)
	return nil
}

// abandon waits for what is still on its way.
func (s *stream) abandon() {
	for _, j := range s.pending {
		<-j.ready
		s.w.slabs.put(j.slab)
	}
	s.pending = nil
}
