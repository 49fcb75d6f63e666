package fetch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/waiting"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Tuning holds the parameters of downloads.
type Tuning struct {
	SingleBelow     int64         // smaller blobs are fetched by a single request
	SingleBusyBelow int64         // the limit while blobs outnumber request slots: it saves a second read to hash
	MinPart         int64         // smallest part of larger blobs
	MaxPart         int64         // largest part
	Stall           time.Duration // repeat a request that receives too little for this long; it grows
	Response        time.Duration // repeat a request that gets no response header for this long; it grows
	Buffer          int           // maximum bytes per write
}

// Tuned is how downloads are tuned.
var Tuned = Tuning{
	SingleBelow:     32 << 20,
	SingleBusyBelow: 256 << 20,
	MinPart:         8 << 20,
	MaxPart:         32 << 20,
	Stall:           waiting.Body,
	Response:        waiting.Response,
	Buffer:          512 << 10,
}

// Blob is a blob with a display name.
type Blob struct {
	ocispec.Descriptor
	Label string
}

// Kind is what happened to a blob. Each has one Begin first and one Done or Present last, unless it fails.
type Kind string

// The kinds of events.
const (
	Begin   Kind = "begin" // Bytes is what an earlier run left
	Moved   Kind = "moved"
	Retry   Kind = "retry" // Err is the reason
	Done    Kind = "done"
	Present Kind = "present" // the store had it
	Waiting Kind = "waiting" // for another process that fetches it
)

// Event is one step of a blob.
type Event struct {
	Kind  Kind
	Bytes int64 // of the blob that are there
	Err   error
}

// Fetcher fetches the blobs of one pull.
type Fetcher struct {
	Store        *store.Store
	Src          *remote.Repository
	Tune         Tuning
	BlobSlots    chan struct{} // limits how many blobs are in transfer
	RequestSlots chan struct{} // limits how many requests are in flight
	Remaining    *atomic.Int64 // blobs that are not complete yet

	Event func(Blob, Event)        // called by several goroutines at a time
	Count func(bytes, saved int64) // counts bytes that came, and such that were there; called as Event is
}

// SizeError means that a blob at the registry has another size than its descriptor says.
type SizeError struct {
	Want, Got int64 // Got is -1 if the registry sent too much
}

func (e *SizeError) Error() string {
	if e.Got < 0 {
		return fmt.Sprintf("the registry sent more than the %d bytes in the manifest: %v", e.Want, remote.ErrDigest)
	}
	return fmt.Sprintf("the registry has %d bytes, but the manifest says %d: %v", e.Got, e.Want, remote.ErrDigest)
}

func (e *SizeError) Is(target error) bool { return target == remote.ErrDigest }

// download is one blob being fetched.
type download struct {
	fetcher  *Fetcher
	blob     Blob
	partial  *ingest.Partial
	timeouts *waiting.Timeouts
}

// Fetch downloads one blob into the store. Content with a wrong digest or size is discarded and fetched once more, from
// the registry itself instead of a mirror.
func (f *Fetcher) Fetch(ctx context.Context, b Blob) error {
	first := Begin
	for tries := 0; ; {
		had, err := f.fetchOnce(ctx, b, first)
		var wrong *ingest.MismatchError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &wrong) && had > 0:
			// Data of an earlier run may be at fault, so this is not counted as an attempt of the registry.
		case errors.Is(err, manifest.ErrNoSpace):
			return fmt.Errorf("%s: %w: free some space and pull again to resume", f.Store.Root(), manifest.ErrNoSpace)
		case !errors.Is(err, manifest.ErrCorrupt) && !errors.Is(err, remote.ErrDigest):
			return fmt.Errorf("blob %s (%s): %w", b.Digest, b.Label, err)
		case tries == 0:
			tries++
		case wrong != nil:
			return fmt.Errorf("blob %s (%s, %d bytes): the registry sent content with digest %s twice: %w",
				b.Digest, b.Label, b.Size, wrong.Got, remote.ErrDigest)
		default:
			return fmt.Errorf("blob %s (%s): %w", b.Digest, b.Label, err)
		}
		first = Moved
		f.Event(b, Event{Kind: Retry, Err: err})
	}
}

// fetchOnce fetches the missing bytes of a blob and commits it. first is the kind of its first event. had is the number
// of bytes that were present before.
func (f *Fetcher) fetchOnce(ctx context.Context, b Blob, first Kind) (had int64, err error) {
	part, err := ingest.OpenPartial(ctx, f.Store, b.Digest, b.Size, func() { f.Event(b, Event{Kind: Waiting}) })
	if errors.Is(err, manifest.ErrHave) {
		f.Count(0, b.Size)
		f.Event(b, Event{Kind: Present, Bytes: b.Size})
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer part.Close()
	had = part.Have()
	d := &download{f, b, part, f.Src.Timeouts()}
	if err := d.fill(ctx, first); err != nil {
		if errors.Is(err, remote.ErrDigest) {
			part.Discard()
		}
		return had, err
	}
	if err := part.Commit(ctx); err != nil {
		return had, err
	}
	f.Count(0, had)
	f.Event(b, Event{Kind: Done, Bytes: b.Size})
	return had, nil
}

// fill fetches the missing bytes while it holds a blob slot. They are hashed as they arrive.
func (d *download) fill(ctx context.Context, first Kind) error {
	if err := acquire(ctx, d.fetcher.BlobSlots); err != nil {
		return err
	}
	defer func() { <-d.fetcher.BlobSlots }()
	had := d.partial.Have()
	d.emit(Event{Kind: first, Bytes: had})
	parts := d.blob.Size >= d.fetcher.Tune.SingleBelow &&
		(d.blob.Size > d.fetcher.Tune.SingleBusyBelow || d.fetcher.Remaining.Load() <= int64(cap(d.fetcher.RequestSlots)))
	if had == 0 && !parts { // hashed as it is written
		return d.fetchSequential(ctx)
	}
	hashing, stop := context.WithCancel(ctx)
	defer stop()
	hashed := make(chan error, 1)
	go func() { hashed <- d.partial.Follow(hashing) }()
	err := d.fetchMissing(ctx, parts)
	if err != nil {
		stop()
	}
	if failed := <-hashed; err == nil {
		err = failed
	}
	return err
}

// fetchMissing fetches the missing bytes, in parallel parts if the server supports range requests.
func (d *download) fetchMissing(ctx context.Context, parts bool) error {
	if parts {
		err := d.fetchParallel(ctx)
		if !errors.Is(err, errNoRanges) {
			return err
		}
	}
	return d.fetchSequential(ctx)
}

func (d *download) emit(e Event) { d.fetcher.Event(d.blob, e) }

// attempts returns a retry budget that reports each retry as an event.
func (d *download) attempts() *remote.Attempts {
	a := d.fetcher.Src.Attempts()
	a.OnRetry = func(err error) { d.emit(Event{Kind: Retry, Bytes: d.partial.Have(), Err: err}) }
	return a
}

// fetchSequential fetches the missing bytes with one request at a time, and a single one unless it is interrupted.
func (d *download) fetchSequential(ctx context.Context) error {
	if err := acquire(ctx, d.fetcher.RequestSlots); err != nil {
		return err
	}
	defer func() { <-d.fetcher.RequestSlots }()
	a := d.attempts()
	ranged := true
	for {
		missing := d.partial.Missing()
		if len(missing) == 0 {
			return nil
		}
		want := missing[0]
		if !ranged {
			want = ingest.Range{Start: 0, End: d.blob.Size}
		}
		before := d.partial.Have()
		err := d.getRange(ctx, want, nil, d.partial.WriteAt)
		got := d.partial.Have() - before
		a.Progress(got)
		if errors.Is(err, errNoRanges) && ranged {
			ranged = false
			continue
		}
		if err == nil {
			err = enough(got, want)
		}
		if err == nil {
			continue
		}
		if err = a.Backoff(ctx, err); err != nil {
			return err
		}
	}
}

// enough returns an error if a response without one brought next to nothing of what it was asked for: with a request
// for each byte, a server could hold a pull for ever.
func enough(got int64, want ingest.Range) error {
	if got < want.Len() && got < remote.Progress {
		return fmt.Errorf("%w: the server sent only %d of the %d bytes that it was asked for", remote.ErrInterrupted, got,
			want.Len())
	}
	return nil
}

// acquire takes a slot, or fails when the context ends.
func acquire(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
