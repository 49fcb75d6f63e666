package pictures

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/vision"
)

// Decoded is a decoded picture, or an error. Its memory is reserved until free is called.
type Decoded struct {
	Patches vision.Patches
	Err     error
	Free    func() // must be called once
}

// Decode cuts a picture into patches, as soon as there is memory for it.
func (e *Encoder) Decode(ctx context.Context, s *Picture) (p Decoded) {
	p.Free = func() {}
	held := min(2*s.Memory, limits.PictureMemory) // the heap grows to twice the live memory
	if err := e.Memory.Acquire(ctx, held); err != nil {
		return Decoded{Err: err, Free: p.Free}
	}
	defer func() {
		if fault := recover(); fault != nil { // an untrusted file must not end the process
			p.Err = fmt.Errorf("the decoder failed: %v: %w", fault, vision.ErrPicture)
		}
		const large = 64 << 20
		if held >= large {
			debug.FreeOSMemory() // before the next picture allocates as much
		}
		if p.Err != nil {
			p.Patches, p.Err = vision.Patches{}, runtime.PictureError(s.name, p.Err)
			e.Memory.Release(held)
			return
		}
		e.Memory.Release(held - s.Held)
		p.Free = func() { e.Memory.Release(s.Held) }
	}()
	p.Patches, p.Err = e.processor.Vision.Processor.Read(s.picture.Data)
	return p
}
