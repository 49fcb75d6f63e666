package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestOnce: calls at a time share one run and its error, unless the error is the end of the other's context.
func TestOnce(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		name string
		end  error // of the first caller's context, or nil
		runs int
	}{
		{"a failure", nil, 1},
		{"canceled", context.Canceled, 2},
		{"ended because of another blob", errors.New("another blob failed"), 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := &host{}
			ctx, cancel := context.WithCancelCause(t.Context())
			fail, runs := make(chan struct{}), 0
			first, second := make(chan error, 1), make(chan error, 1)
			go func() {
				first <- h.once(ctx, "", func() error {
					runs++
					select {
					case <-fail:
						return refused
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})
			}()
			synctest.Wait()
			go func() {
				second <- h.once(t.Context(), "", func() error { runs++; return nil })
			}()
			synctest.Wait()
			if c.end != nil {
				cancel(c.end)
			} else {
				close(fail)
			}
			var want error
			if c.runs == 1 {
				want = refused
			}
			if err := <-first; err == nil {
				t.Errorf("%s: the first succeeded", c.name)
			}
			if err := <-second; err != want || runs != c.runs {
				t.Errorf("%s: the second got %v after %d runs, want %v after %d", c.name, err, runs, want, c.runs)
			}
			cancel(nil)
		})
	}
}
