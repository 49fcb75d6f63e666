package mlxtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingotml/ingot/mlx"
)

// forks are the engine threads that ranks ran on. They are used again, since they stay until the process ends.
var forks struct {
	sync.Mutex
	free []*mlx.Thread
}

var groups atomic.Int64

// rankLimit is long because tests of other packages use the processors, too.
const rankLimit = 2 * time.Minute

// Ranks runs fn as the ranks of a group, each inside Do of an engine thread of its own, and fails the test if one of
// them fails. It must not be called inside Do.
func Ranks(t testing.TB, n int, fn func(e *mlx.Thread, ranks *mlx.Group) error) {
	t.Helper()
	if err := TryRanks(t, n, rankLimit, fn); err != nil {
		t.Fatal(err)
	}
}

// TryRanks is Ranks with the limit of the group's operations. It returns the errors of the ranks.
func TryRanks(t testing.TB, n int, limit time.Duration, fn func(e *mlx.Thread, ranks *mlx.Group) error) error {
	t.Helper()
	return EachRank(t, n, limit, func(e *mlx.Thread, g *mlx.Group) error {
		return e.Do(context.Background(), func() error {
			defer g.Close()
			return fn(e, g)
		})
	})
}

// EachRank is TryRanks for functions that call Do themselves.
func EachRank(t testing.TB, n int, limit time.Duration, fn func(e *mlx.Thread, ranks *mlx.Group) error) error {
	t.Helper()
	threads, err := fork(Open(t), n)
	defer func() {
		forks.Lock()
		forks.free = append(forks.free, threads...)
		forks.Unlock()
	}()
	if err != nil {
		t.Fatal(err)
	}
	name, failed := fmt.Sprint("test ", groups.Add(1)), make([]error, n)
	var all, joined sync.WaitGroup
	joined.Add(n) // a group that all of its ranks left is another one for the next
	for rank, e := range threads {
		all.Go(func() {
			var g *mlx.Group
			err := e.Do(context.Background(), func() (err error) {
				g, err = e.Join(mlx.GroupOptions{Backend: mlx.LocalBackend, Name: name, Rank: rank, Size: n, Limit: limit})
				return err
			})
			joined.Done()
			joined.Wait()
			if err == nil {
				err = fn(e, g)
				g.Close()
			}
			if err != nil {
				failed[rank] = fmt.Errorf("rank %d: %w", rank, err)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// fork returns n threads beside the first one.
func fork(first *mlx.Thread, n int) ([]*mlx.Thread, error) {
	forks.Lock()
	defer forks.Unlock()
	for len(forks.free) < n {
		e, err := first.Fork()
		if err != nil {
			return nil, err
		}
		forks.free = append(forks.free, e)
	}
	threads := forks.free[:n:n]
	forks.free = forks.free[n:]
	return threads, nil
}
