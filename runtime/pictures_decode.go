package runtime

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/semaphore"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/vision"
)

// decoder bounds the memory of a model's pictures from their files to the tower, by limits.PictureMemory. A picture that
// does not fit waits in a FIFO queue.
type decodeMemory struct{ *semaphore.Weighted }

func newDecodeMemory() decodeMemory { return decodeMemory{semaphore.NewWeighted(limits.PictureMemory)} }

// decoded is a picture in patches, or why there are none. Its memory counts until free.
type decoded struct {
	patches vision.Patches
	err     error
	free    func() // once
}

// decode makes patches of a picture's file, as soon as there is memory for it.
func (l *Local) decode(ctx context.Context, s *promptPicture) (p decoded) {
	p.free = func() {}
	held := min(2*s.Memory, limits.PictureMemory) // the heap grows to twice what is used
	if err := l.decodeMemory.Acquire(ctx, held); err != nil {
		return decoded{err: err, free: p.free}
	}
	defer func() {
		if fault := recover(); fault != nil { // the file is not ours
			p.err = fmt.Errorf("the decoder failed: %v: %w", fault, vision.ErrPicture)
		}
		const large = 64 << 20
		if held >= large {
			debug.FreeOSMemory() // before others take as much
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

// decoding is a picture of a running request that is on its way to the tower.
type decodeJob struct {
	decoded
	done   chan struct{} // closed once decoded is there
	cancel context.CancelFunc
}

// decode begins to decode the next picture of a request. The loop is woken when that is done.
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

// ready tells whether the picture has been decoded, or could not be.
func (d *decodeJob) ready() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// stop gives a picture up, and its memory as soon as the decoder lets go of it.
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

// blind tells whether pictures of a request have yet to go through the tower.
func (g *generation) awaitsPictures() bool {
	return g.pictures != nil && g.encodedPictures < len(g.pictures.distinct)
}

// encode runs the next picture that is decoded through the tower, if there is one.
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
