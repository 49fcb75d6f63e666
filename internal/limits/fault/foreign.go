package fault

import (
	"context"
	"syscall"
)

// init registers errors of the standard library.
func init() {
	Register(syscall.ENOSPC, Kind{
		Name: "syscall.ENOSPC", Means: "the disk is full", Rank: Store + 4, Status: Full, Transfer: Full,
	})
	// A deadline comes before a cancellation, because it also cancels.
	Register(context.DeadlineExceeded, Kind{
		Name: "context.DeadlineExceeded", Means: "the request took too long", Rank: Context + 1,
		Status: Timeout, Wire: "deadline",
	})
	Register(context.Canceled, Kind{
		Name: "context.Canceled", Means: "the request was canceled", Rank: Context + 2, Wire: "canceled",
	})
}
