package server

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"golang.org/x/sync/errgroup"
)

// atOnce is how many answers of one request are made at the same time, so that it does not fill the model's queue.
const atOnce = 16

// runAll runs jobs, and hands what they say to each, one piece at a time. The first error ends all of them.
func (s *Server) runAll(ctx context.Context, jobs []job, each func(i int, p piece) error) ([]outcome, error) {
	all := make([]outcome, len(jobs))
	if len(jobs) == 1 {
		var err error
		all[0], err = s.run(ctx, jobs[0], func(p piece) error { return each(0, p) })
		return all, err
	}
	var mu sync.Mutex
	var panicked any // of a job: it is the request's
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
			all[i], err = s.run(ctx, j, func(p piece) error {
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

var errPanicked = errors.New("another answer of the request failed")

// newOpenAIEvents is a stream whose last message may be an error in OpenAI's form.
func newOpenAIEvents(w http.ResponseWriter) events {
	e := events{w: w}
	e.last = func(t told) error {
		e := events{w: w}
		return e.send("", openAIError(t))
	}
	return e
}
