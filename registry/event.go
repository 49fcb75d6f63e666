package registry

import "github.com/opencontainers/go-digest"

// EventKind says what happened to a blob.
type EventKind string

// The kinds of events. A blob has one Begin first and one Done, Present, Mounted or Skipped last, unless the operation fails;
// one of which nothing has to move may have the last alone. Plan comes before all others; it comes again when more is found to
// do, and the totals add up.
const (
	Plan    EventKind = "plan"    // of the whole: Total is the size of all blobs, each digest once, also of those that are there
	Begin   EventKind = "begin"   // Total is the blob's size; Bytes is what an earlier run has left of it
	Moved   EventKind = "moved"   // Bytes is how much of the blob is there now; it may go back when something is done again
	Retry   EventKind = "retry"   // Err says why
	Done    EventKind = "done"    // transferred and verified; Total is the blob's size, as it is for the next three
	Present EventKind = "present" // the other side had it
	Mounted EventKind = "mounted" // taken over from another repository of the same registry
	Skipped EventKind = "skipped" // left out by what the caller asked for
	Warned  EventKind = "warning" // Err is what people should know of Name, a registry or a model; may come at any time
	Waiting EventKind = "waiting" // for another process, which moves the same blob
)

// Event is a step of a push or pull. Events of one operation come one at a time.
type Event struct {
	Kind   EventKind
	Digest digest.Digest // of the blob; empty for Plan and Warned
	Name   string        // of the layer, for people; for Warned what it is about
	Bytes  int64
	Total  int64
	Err    error
}
