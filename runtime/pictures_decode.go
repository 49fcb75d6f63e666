package runtime

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/semaphore"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/vision"
)

// decodeMemory bounds the memory of a model's pictures between their files and the vision tower by
// limits.PictureMemory. Pictures that do not fit wait in a FIFO queue.
type decodeMemory struct{ *semaphore.Weighted }

func newDecodeMemory() decodeMemory { return decodeMemory{semaphore.NewWeighted(limits.PictureMemory)} }

// decoded is a decoded picture, or an error. Its memory is reserved until free is called.
type decoded struct {
	patches vision.Patches
	err     error
	free    func() // must be called once
}

// decode cuts a picture into patches, as soon as there is memory for it.
func (l *Local) decode(ctx context.Context, s *promptPicture) (p decoded) {
	p.free = func() {}
	held := min(2*s.Memory, limits.PictureMemory) // the heap grows to twice the live memory
	if err := l.decodeMemory.Acquire(ctx, held); err != nil {
		return decoded{err: err, free: p.free}
	}
	defer func() {
		if fault := recover(); fault != nil { // an untrusted file must not end the process
			p.err = fmt.Errorf("the decoder failed: %v: %w", fault, vision.ErrPicture)
		}
		const large = 64 << 20
		if held >= large {
			debug.FreeOSMemory() // before the next picture allocates as much
		}
		if p.err != nil {
			p.patches, p.err = vision.Patches{}, badPicture{fmt.Errorf("%s: %w", s.name, p.err)}
			l.decodeMemory.Release(held)
			return
		}
		l.decodeMemory.Release(held - s.Held)
		p.free = func() { l.decodeMemory.Release(s.Held) }
	}()
	p.patches, p.err = l.vision.processor.Read(s.picture.Data)
	return p
}

// decodeJob decodes a picture of a running request.
type decodeJob struct {
	decoded
	done   chan struct{} // closed when decoded is set
	cancel context.CancelFunc
}

// startDecode starts to decode the next picture of a request. It wakes the loop when the picture is decoded.
func (b *batcher) startDecode(g *generation) {
	if g.encodedPictures == len(g.pictures.distinct) {
		return
	}
	ctx, cancel := context.WithCancel(g.ctx)
	d := &decodeJob{done: make(chan struct{}), cancel: cancel}
	s := g.pictures.distinct[g.encodedPictures]
	go func() {
		d.decoded = b.l.decode(ctx, s)
		close(d.done)
		b.wake()
	}()
	g.decodeJob = d
}

// ready reports whether the job is done, with or without an error.
func (d *decodeJob) ready() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// stop cancels a job. Its memory is released when the decoder returns. d may be nil.
func (d *decodeJob) stop() {
	if d == nil {
		return
	}
	d.cancel()
	go func() {
		<-d.done
		d.free()
	}()
}

// awaitsPictures reports whether the request has pictures that are not encoded yet.
func (g *generation) awaitsPictures() bool {
	return g.pictures != nil && g.encodedPictures < len(g.pictures.distinct)
}

// encodeNextPicture runs the next decoded picture through the vision tower, and reports whether there was one.
func (b *batcher) encodeNextPicture() bool {
	for _, g := range b.running {
		if !g.awaitsPictures() {
			continue
		}
		if g.decodeJob == nil {
			b.startDecode(g)
		}
		d := g.decodeJob
		if !d.ready() {
			continue
		}
		g.decodeJob = nil
		err := d.err
		if err == nil {
			err = b.do(func() error { return b.l.runTower(g.ctx, g.pictures.distinct[g.encodedPictures], d.patches) })
		}
		d.cancel()
		d.free()
		if err != nil {
			b.finish(g, err)
			return true
		}
		g.encodedPictures++
		return true
	}
	return false
}
