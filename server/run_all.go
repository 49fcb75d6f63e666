package server

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many choices of a request run concurrently, so that one request does not fill the model's queue.
const atOnce = 16

// RunAll runs jobs and passes their pieces to each, one at a time. The first error cancels all jobs.
func (s *Server) RunAll(ctx context.Context, jobs []Job, each func(i int, p Piece) error) ([]Outcome, error) {
	all := make([]Outcome, len(jobs))
	if len(jobs) == 1 {
		var err error
		all[0], err = s.Run(ctx, jobs[0], func(p Piece) error { return each(0, p) })
		return all, err
	}
	var mu sync.Mutex
	var panicked any // the panic of a job, which is passed on to the caller
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, j := range jobs {
		g.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					mu.Lock()
					defer mu.Unlock()
					panicked, err = p, errPanicked
				}
			}()
			all[i], err = s.Run(ctx, j, func(p Piece) error {
				mu.Lock()
				defer mu.Unlock()
				return each(i, p)
			})
			return err
		})
	}
	err := g.Wait()
	if panicked != nil {
		panic(panicked)
	}
	return all, err
}

var errPanicked = errors.New("another choice of the request failed")
