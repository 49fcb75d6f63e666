package server

import (
	"context"
	"errors"
	"time"

	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/runner"
)

// withProcess runs a request on a model's process, and loads the model if needed. said is whether the client may know
// something of the response. If the process dies before that, perhaps just before the request has come, the request
// goes on with a new one; once, because the request itself may be what kills the process. load is how long loading took.
func (s *Server) withProcess(
	ctx context.Context, m *Model, keep *time.Duration, run func(*pool.Lease) (said bool, err error),
) (load time.Duration, err error) {
	for again := s.restarts(m); ; again = false {
		took, said, err := s.onProcess(ctx, m, keep, run)
		load += took
		if !again || said || ctx.Err() != nil || !errors.Is(err, runner.ErrDied) {
			return load, err
		}
		s.opts.Log("%s: %v; it is started again", m.Name(), err)
	}
}

func (s *Server) onProcess(
	ctx context.Context, m *Model, keep *time.Duration, run func(*pool.Lease) (said bool, err error),
) (load time.Duration, said bool, err error) {
	lease, load, err := s.acquire(ctx, m)
	if err != nil {
		return load, false, err
	}
	defer lease.Release(keep)
	said, err = run(lease)
	return load, said, err
}

// restarts reports whether a model whose process has died can be loaded again: not if a launcher starts its ranks.
func (s *Server) restarts(m *Model) bool { return !s.source(m).Stays }
