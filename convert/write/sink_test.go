package write

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"golang.org/x/sync/semaphore"
)

// Blobs that are not kept wait for space. One that is larger than all of it waits until it is alone.
func TestUnsentBlobs(t *testing.T) {
	w := &writer{noKeep: true, disk: semaphore.NewWeighted(limits.UnsentBlobs)}
	reserve := func(size int64) (func(), error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		return w.reserve(ctx, size)
	}
	for _, c := range []struct {
		name         string
		first, other int64
		fits         bool
	}{
		{"both fit", limits.UnsentBlobs - 1, 1, true},
		{"one byte too many", limits.UnsentBlobs, 1, false},
		{"a larger one after another", 1, 4 * limits.UnsentBlobs, false},
		{"another after a larger one", 4 * limits.UnsentBlobs, 1, false},
	} {
		release, err := reserve(c.first)
		if err != nil {
			t.Fatalf("%s: the first: %v", c.name, err)
		}
		other, err := reserve(c.other)
		if fits := err == nil; fits != c.fits || !fits && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", c.name, err)
		}
		release()
		release() // the second call does nothing
		if err != nil {
			if other, err = reserve(c.other); err != nil {
				t.Fatalf("%s: after the first: %v", c.name, err)
			}
		}
		other()
	}
	w.noKeep = false
	for range 3 {
		if _, err := reserve(limits.UnsentBlobs); err != nil {
			t.Errorf("blobs that are kept wait: %v", err)
		}
	}
}
