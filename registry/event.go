package registry

import (
	"time"

	"github.com/opencontainers/go-digest"
)

// EventKind is what happened to a blob.
type EventKind string

// The kinds of events. Unless the operation fails, a blob has one Begin first and one Done, Present, Mounted or Skipped
// last. A blob that needs no transfer may have only the last. Plan comes before all others. It comes again when more
// work is found, and the totals add up.
const (
	// Plan is of the whole operation: Total is the size of all blobs, each digest once, present ones included.
	Plan    EventKind = "plan"
	Begin   EventKind = "begin"   // Total is the blob's size; Bytes is what an earlier run left of it
	Moved   EventKind = "moved"   // Bytes is how much of the blob is transferred; it may decrease after a failure
	Retry   EventKind = "retry"   // Err is the reason
	Done    EventKind = "done"    // transferred and verified; Total is the blob's size, as in the next three
	Present EventKind = "present" // the receiver had it
	Mounted EventKind = "mounted" // mounted from another repository of the same registry
	Skipped EventKind = "skipped" // excluded by the caller's options, or refused and optional
	Warned  EventKind = "warning" // Err is a warning about Name, a registry or a model; may come at any time
	Waiting EventKind = "waiting" // for another process that transfers the same blob
	Paused  EventKind = "paused"  // Name, a host, limits requests: none is sent to it for Wait; may come at any time
)

// Event is one step of a push or pull. Events of one operation come one at a time.
type Event struct {
	Kind   EventKind
	Digest digest.Digest // of the blob; empty for Plan, Warned and Paused
	Name   string        // of the layer, for display; for Warned, the registry or model; for Paused, the host
	Bytes  int64
	Total  int64
	Err    error
	Wait   time.Duration // for Paused
}
