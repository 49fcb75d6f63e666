package collect

import (
	"fmt"

	"github.com/ingotml/ingot/manifest"
)

// KeptError is returned by [Remove] if it removed the names but not their blobs. The blobs only take up space;
// the next Remove or Prune deletes them. Cause is the reason, a [*lock.BusyError] if another process is writing to the
// store. It matches [manifest.ErrBlobsKept].
type KeptError struct {
	Names []manifest.Name
	Cause error
}

func (e *KeptError) Error() string {
	what := fmt.Sprintf("%d models", len(e.Names))
	if len(e.Names) == 1 {
		what = e.Names[0].String()
	}
	return fmt.Sprintf("removed %s, but its blobs stay until the next `ingot rm` or `ingot prune`: %v", what, e.Cause)
}

func (e *KeptError) Unwrap() error { return e.Cause }

func (e *KeptError) Is(target error) bool { return target == manifest.ErrBlobsKept }
