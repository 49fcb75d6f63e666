package write

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/ingotml/ingot/convert/plan"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// tensor streams a tensor into its blob, batch by batch. One goroutine reads, encodes, hashes and writes, so it seldom
// blocks. Processors without a tensor of their own encode batches ahead for others, as long as there are slabs. Packed
// elements are hashed as they are written. Scales and biases come after all of them in the blob, so they are written to
// their final offsets ahead of the hash.
func (w *writer) tensor(ctx context.Context, t *plan.Tensor) error {
	if t.Digest != "" {
		w.progress.Add(t.SourceBytes(), 1)
		return nil
	}
	name := blobName(manifest.KindTensor, t.Name)
	if w.finished(name, t.SourceBytes(), 1) {
		if err := w.restoreChecksums(ctx, t, name); err != nil {
			return err
		}
		return w.resend(ctx, "tensor "+t.Name, name, t.Size)
	}
	release, err := w.reserve(ctx, t.Size)
	if err != nil {
		return err
	}
	sealed := false
	defer func() {
		if !sealed {
			release()
		}
	}()
	if done, err := w.streamed(ctx, t, name); done || err != nil {
		return err
	}
	coder, closeAll, err := w.newCoder(t)
	if err != nil {
		return err
	}
	defer closeAll()
	blob, err := w.ingest.NewBlob(name)
	if err != nil {
		return err
	}
	if err := blob.Allocate(t.Size); err != nil {
		blob.Abort()
		return err
	}
	s := stream{w: w, t: t, blob: blob, coder: coder, hashes: newSourceHashes(t)}
	note, err := s.run(ctx)
	if err != nil {
		blob.Abort()
		return err
	}
	blob.Note(note)
	sealed = true
	w.seal(ctx, "tensor "+t.Name, blob, func(size int64) error {
		defer release()
		if size != t.Size {
			return differs(t, size)
		}
		w.progress.Add(0, 1)
		return w.send(ctx, name)
	})
	return nil
}

// newCoder opens a tensor's sources.
func (w *writer) newCoder(t *plan.Tensor) (c coder, closeAll func(), err error) {
	c = coder{coding: t.Coding, add: t.Match.Add}
	if t.Coding.Calibrated != nil {
		if err := c.setCoders(t, &w.factors); err != nil {
			return c, func() {}, err
		}
	}
	if t.Coding.Keep || t.Coding.Floats {
		c.coded, c.row = openCoded(t.Sources), t.Sources[0].Shape[len(t.Sources[0].Shape)-1]
		return c, func() {}, nil
	}
	var list []source.Tensor
	for _, s := range t.Sources {
		list = append(list, *s.Tensor)
	}
	c.sources, closeAll, err = openAll(list...)
	if t.Match.Transposed {
		for i, r := range c.sources {
			shape := t.Sources[i].Shape
			rows, columns := shape[len(shape)-2], shape[len(shape)-1]
			c.sources[i] = &transposed{
				of: r, rows: rows, columns: columns, width: t.Coding.Width,
				count: safetensors.Tensor{Shape: shape}.NumElements() / (rows * columns),
			}
		}
	}
	return c, closeAll, err
}

// differs is the error of a blob that has another size than planned.
func differs(t *plan.Tensor, size int64) error {
	return fmt.Errorf("%w: the blob has %d bytes, not %d as planned", source.ErrSource, size, t.Size)
}

// openAll opens tensors.
func openAll(list ...source.Tensor) (readers []io.ReaderAt, closeAll func(), err error) {
	var closers []func() error
	closeAll = func() {
		for _, c := range closers {
			_ = c()
		}
	}
	for _, t := range list {
		r, c, err := t.Open()
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		readers, closers = append(readers, r), append(closers, c)
	}
	return readers, closeAll, nil
}

// blobWriter writes a blob: Write from its beginning, WriteAt ahead of that.
type blobWriter interface {
	io.Writer
	io.WriterAt
}

// stream is a tensor being written.
type stream struct {
	w       *writer
	t       *plan.Tensor
	blob    blobWriter
	coder   coder
	offsets []int64 // where the next part of each array is written
	pending []*job  // in order
	begun   int64   // elements in batches that were started
	done    int64   // elements written
	read    int64   // bytes of the sources that were reported
	hashes  sourceHashes
}

// job is a batch being encoded.
type job struct {
	slab   []byte
	batch  []sourceRange
	at     int64 // the batch's first element in the tensor
	result quantize.Blocks
	err    error
	ready  chan struct{} // closed when the batch is encoded
}

func (j *job) done() bool {
	select {
	case <-j.ready:
		return true
	default:
		return false
	}
}

// run writes the tensor. The note has the checksums of its sources.
func (s *stream) run(ctx context.Context) (note string, err error) {
	if err := s.write(ctx); err != nil {
		return "", err
	}
	return s.w.computeChecksums(ctx, s.t, s.hashes)
}

func (s *stream) write(ctx context.Context) error {
	defer s.abandon()
	s.offsets = append([]int64{}, s.t.Coding.Layout.Offsets...)
	header, err := s.t.Coding.Layout.Header()
	if err != nil {
		return err
	}
	if _, err := s.blob.Write(header); err != nil {
		return err
	}
	for batch := range batches(s.t.Match.Pieces(), s.coder.batch()) {
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
	if s.done != s.t.Params() {
		return fmt.Errorf("%w: the sources have %d of its %d elements", source.ErrSource, s.done, s.t.Params())
	}
	if l := s.t.Coding; l.Global != 0 {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(l.Global))
		if _, err := s.blob.WriteAt(b[:], l.Layout.Offsets[len(l.Layout.Offsets)-1]); err != nil {
			return err
		}
	}
	for _, from := range s.t.Sources {
		if err := from.Tensor.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// start encodes a batch, or hands it to an idle processor. If there is no free slab, it finishes earlier batches first.
// A stream that holds slabs never waits for more, so streams cannot deadlock.
func (s *stream) start(ctx context.Context, batch []sourceRange) error {
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
	j := &job{slab: slab, batch: batch, at: s.begun, ready: make(chan struct{})}
	s.begun += countOf(batch)
	s.pending = append(s.pending, j)
	code := func() {
		defer close(j.ready)
		j.result, j.err = s.coder.run(j.slab, j.batch, j.at)
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
		return locate(j.err, j.batch, *s.t)
	}
	s.hashes.add(j.batch, j.slab, s.t.Coding.Width)
	if _, err := s.blob.Write(j.result.Packed); err != nil {
		return err
	}
	for i, piece := range [][]byte{j.result.Scales, j.result.Biases} {
		if len(piece) == 0 {
			continue
		}
		if _, err := s.blob.WriteAt(piece, s.offsets[1+i]); err != nil {
			return err
		}
		s.offsets[1+i] += int64(len(piece))
	}
	n := countOf(j.batch)
	s.done += n
	read := n * s.t.Coding.Width
	if s.t.Coding.Keep || s.t.Coding.Floats {
		read = int64(float64(s.t.SourceBytes())*float64(s.done)/float64(s.t.Params())) - s.read
	}
	s.read += read
	s.w.progress.Add(read, 0)
	return nil
}

// abandon waits for pending batches and releases their slabs.
func (s *stream) abandon() {
	for _, j := range s.pending {
		<-j.ready
		s.w.slabs.put(j.slab)
	}
	s.pending = nil
}
