package manifest

import (
	"fmt"
)

// KeptError is returned by [Store.Remove] if it removed the names but not their blobs. The blobs only take up space;
// the next Remove or Prune deletes them. Cause is the reason, a [*BusyError] if another process is writing to the
// store. It matches [ErrBlobsKept].
type KeptError struct {
	Names []Name
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

func (e *KeptError) Is(target error) bool { return target == ErrBlobsKept }
