package ranks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
)

// Follow is a follower's end of a control connection. It receives a Start, checks that the program has the leader's
// version, calls open, which joins the group and loads this rank's part of the model, and then does what the leader
// does, until the group ends. It closes the connection and the model. It returns nil if the leader ended the group in
// good order, and otherwise an error that says why the group ended. The end of ctx ends it, too.
func Follow(
	ctx context.Context, conn net.Conn, program string, open func(context.Context, Start) (*load.Model, error),
) error {
	return follow(ctx, conn, program, open, pingInterval, runtime.Silence)
}

func follow(ctx context.Context, conn net.Conn, program string,
	open func(context.Context, Start) (*load.Model, error), interval, silence time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := newLink(conn, interval, silence)
	defer l.close()
	frames := make(chan frame, 256)
	var reader sync.WaitGroup
	reader.Go(func() { cancel(receive(ctx, l, frames)) })
	defer reader.Wait()
	defer l.close() // ends the reader
	err := runFollower(ctx, l, frames, program, open)
	switch {
	case errors.Is(err, errEnded):
		return nil
	case err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = context.Cause(ctx)
	}
	if errors.Is(err, errEnded) {
		return nil
	}
	_ = l.write(frameFailed, []byte(err.Error()))
	if !errors.Is(err, runtime.ErrRanks) {
		err = fmt.Errorf("%w: %w", runtime.ErrRanks, err)
	}
	return err
}

// errEnded says that the leader ended the group in good order.
var errEnded = errors.New("rank 0 has ended the group")

type frame struct {
	kind    byte
	content []byte
}

// receive passes frames on until the group ends, and returns why it did.
func receive(ctx context.Context, l *link, to chan<- frame) error {
	for {
		kind, content, err := l.read()
		if gone := l.gone("rank 0", err); gone != nil {
			return gone
		}
		switch {
		case err != nil:
			return fmt.Errorf("the connection to rank 0 failed: %w", err)
		case kind == frameEnd:
			return errEnded
		case kind == frameFailed:
			return fmt.Errorf("%s", content)
		}
		select {
		case to <- frame{kind, content}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// next returns the next frame.
func next(ctx context.Context, frames <-chan frame) (frame, error) {
	select {
	case f := <-frames:
		return f, nil
	default:
	}
	select {
	case f := <-frames:
		return f, nil
	case <-ctx.Done():
		return frame{}, context.Cause(ctx)
	}
}

func runFollower(ctx context.Context, l *link, frames <-chan frame, program string,
	open func(context.Context, Start) (*load.Model, error)) (err error) {
	first, err := next(ctx, frames)
	if err != nil {
		return err
	}
	var s Start
	if first.kind != frameStart {
		return fmt.Errorf("rank 0 begins with a message of the kind %d; all ranks need the same version", first.kind)
	}
	if err := json.Unmarshal(first.content, &s); err != nil {
		return err
	}
	if s.Program != program {
		return fmt.Errorf("this rank runs ingot %s, rank 0 %s; all ranks need the same version", program, s.Program)
	}
	if s.Rank < 1 || s.Rank >= s.Size {
		return fmt.Errorf("rank %d of %d", s.Rank, s.Size)
	}
	m, err := open(ctx, s)
	if err != nil {
		return err
	}
	if v := m.Thread.Info().Version; v != s.Engine {
		err = fmt.Errorf("this rank runs MLX %s, rank 0 %s; all ranks need the same version", v, s.Engine)
		return errors.Join(err, m.Close(nil))
	}
	r := newReplica(m)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a fault of the program: %v\n%s", p, debug.Stack())
		}
		if closed := m.Close(r.close); closed != nil {
			err = fmt.Errorf("closing the model: %w", closed)
		}
	}()
	var ready Ready
	err = m.Do(ctx, func() error { ready = Measure(m.Thread, m.Weights.Bytes()); return nil })
	if err == nil {
		err = l.writeJSON(frameReady, ready)
	}
	if err != nil {
		return err
	}
	var failed error
	r.checked = func(number uint64) {
		if err := l.writeJSON(frameChecked, r.state(number)); err != nil && failed == nil {
			failed = err
		}
	}
	return m.Do(ctx, func() error {
		err := r.follow(ctx, frames)
		if failed != nil {
			return failed
		}
		return err
	})
}

// follow applies commands until there are no more. What a forward pass makes lives until the next one.
func (r *replica) follow(ctx context.Context, frames <-chan frame) error {
	var todo []byte
	for {
		var err error
		r.model.Thread.Scope(func() {
			for done := false; err == nil && !done; {
				if todo, done, err = r.batch(todo); err != nil || done {
					return
				}
				var f frame
				if f, err = next(ctx, frames); err == nil && f.kind != frameCommands {
					err = fmt.Errorf("a message of the kind %d", f.kind)
				}
				todo = f.content
			}
		})
		r.hidden, r.logits = nil, nil
		if err != nil {
			return err
		}
	}
}

// batch applies commands up to the next forward pass that is not the first one. It returns those that are left, and
// whether there are any.
func (r *replica) batch(todo []byte) (left []byte, more bool, err error) {
	for len(todo) > 0 {
		if todo[0] == opForward && r.hidden != nil {
			return todo, true, nil
		}
		var c command
		if c, todo, err = decode(todo); err != nil {
			return nil, false, err
		}
		if err := c.apply(r); err != nil {
			return nil, false, err
		}
	}
	return nil, false, nil
}
