package batch

import (
	"context"

	"github.com/ingotml/ingot/runtime/pictures"
)

// requestPictures is the progress of a request's pictures, which are decoded and encoded one at a time.
type requestPictures struct {
	prompt  *pictures.Prompt // nil without pictures
	encoded int              // distinct pictures that the vision tower has encoded
	job     *decodeJob       // decodes the next picture; nil if none is running
}

// pending reports whether there are pictures that are not encoded yet.
func (p *requestPictures) pending() bool {
	return p.prompt != nil && p.encoded < len(p.prompt.Distinct)
}

// next returns the next picture to encode.
func (p *requestPictures) next() *pictures.Picture { return p.prompt.Distinct[p.encoded] }

// decoded returns the job of the next picture when it is done, with or without an error, and hands it to the caller. It
// starts the job if needed, and returns nil while it runs. wake is called when the job is done.
func (p *requestPictures) decoded(ctx context.Context, e *pictures.Encoder, wake func()) *decodeJob {
	if p.job == nil {
		p.job = startDecode(ctx, e, p.next(), wake)
	}
	d := p.job
	select {
	case <-d.done:
		p.job = nil
		return d
	default:
		return nil
	}
}

// stop cancels the running job. Its memory is released when the decoder returns.
func (p *requestPictures) stop() {
	d := p.job
	if d == nil {
		return
	}
	p.job = nil
	d.cancel()
	go func() {
		<-d.done
		d.Free()
	}()
}

// decodeJob decodes a picture of a running request.
type decodeJob struct {
	pictures.Decoded
	done   chan struct{} // closed when decoded is set
	cancel context.CancelFunc
}

// startDecode starts to decode a picture. It calls wake when the picture is decoded.
func startDecode(ctx context.Context, e *pictures.Encoder, s *pictures.Picture, wake func()) *decodeJob {
	ctx, cancel := context.WithCancel(ctx)
	d := &decodeJob{done: make(chan struct{}), cancel: cancel}
	go func() {
		d.Decoded = e.Decode(ctx, s)
		close(d.done)
		wake()
	}()
	return d
}
