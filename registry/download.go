package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/registry/remote"
)

// tuning holds the parameters of downloads.
type tuning struct {
	singleBelow     int64         // smaller blobs are fetched by a single request
	singleBusyBelow int64         // the limit while blobs outnumber request slots: it saves a second read to hash
	minPart         int64         // smallest part of larger blobs
	maxPart         int64         // largest part
	stallTimeout    time.Duration // retry a request that receives no byte for this long
	headerTimeout   time.Duration // retry a request that gets no response header for this long
	buffer          int           // maximum bytes per write
}

var defaultTuning = tuning{
	singleBelow:     32 << 20,
	singleBusyBelow: 256 << 20,
	minPart:         8 << 20,
	maxPart:         32 << 20,
	stallTimeout:    10 * time.Second,
	headerTimeout:   30 * time.Second,
	buffer:          512 << 10,
}

// sizeError means that a blob at the registry has another size than its descriptor says.
type sizeError struct {
	want, got int64 // got is -1 if the registry sent too much
}

func (e *sizeError) Error() string {
	if e.got < 0 {
		return fmt.Sprintf("the registry sent more than the %d bytes in the manifest: %v", e.want, remote.ErrDigest)
	}
	return fmt.Sprintf("the registry has %d bytes, but the manifest says %d: %v", e.got, e.want, remote.ErrDigest)
}

func (e *sizeError) Is(target error) bool { return target == remote.ErrDigest }

// download is one blob being fetched.
type download struct {
	pull    *puller
	blob    pullBlob
	partial *ingest.Partial
}

// fetch downloads one blob into the store. Content with a wrong digest or size is discarded and fetched once more, from
// the registry itself instead of a mirror.
func (p *puller) fetch(ctx context.Context, b pullBlob) error {
	first := Begin
	for tries := 0; ; {
		had, err := p.fetchOnce(ctx, b, first)
		var wrong *ingest.MismatchError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &wrong) && had > 0:
			// Data of an earlier run may be at fault, so this is not counted as an attempt of the registry.
		case errors.Is(err, manifest.ErrNoSpace):
			return fmt.Errorf("%s: %w: free some space and pull again to resume", p.s.Root(), manifest.ErrNoSpace)
		case !errors.Is(err, manifest.ErrCorrupt) && !errors.Is(err, remote.ErrDigest):
			return fmt.Errorf("blob %s (%s): %w", b.Digest, b.label, err)
		case tries == 0:
			tries++
		case wrong != nil:
			return fmt.Errorf("blob %s (%s, %d bytes): the registry sent content with digest %s twice: %w",
				b.Digest, b.label, b.Size, wrong.Got, remote.ErrDigest)
		default:
			return fmt.Errorf("blob %s (%s): %w", b.Digest, b.label, err)
		}
		first = Moved
		p.emit(b, Event{Kind: Retry, Err: err})
	}
}

// fetchOnce fetches the missing bytes of a blob and commits it. first is the kind of its first event. had is the number
// of bytes that were present before.
func (p *puller) fetchOnce(ctx context.Context, b pullBlob, first EventKind) (had int64, err error) {
	part, err := ingest.OpenPartial(ctx, p.s, b.Digest, b.Size, func() { p.emit(b, Event{Kind: Waiting}) })
	if errors.Is(err, manifest.ErrHave) {
		p.addBytes(0, b.Size)
		p.emit(b, Event{Kind: Present, Bytes: b.Size})
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer part.Close()
	had = part.Have()
	d := &download{p, b, part}
	if err := d.fill(ctx, first); err != nil {
		if errors.Is(err, remote.ErrDigest) {
			part.Discard()
		}
		return had, err
	}
	if err := part.Commit(ctx); err != nil {
		return had, err
	}
	p.addBytes(0, had)
	p.emit(b, Event{Kind: Done, Bytes: b.Size})
	return had, nil
}

// fill fetches the missing bytes while it holds a blob slot. They are hashed as they arrive.
func (d *download) fill(ctx context.Context, first EventKind) error {
	if err := acquire(ctx, d.pull.blobSlots); err != nil {
		return err
	}
	defer func() { <-d.pull.blobSlots }()
	had := d.partial.Have()
	d.emit(Event{Kind: first, Bytes: had})
	parts := d.blob.Size >= d.pull.tune.singleBelow &&
		(d.blob.Size > d.pull.tune.singleBusyBelow || d.pull.remaining.Load() <= int64(cap(d.pull.requestSlots)))
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

func (d *download) emit(e Event) { d.pull.emit(d.blob, e) }

// attempts returns a retry budget that reports each retry as an event.
func (d *download) attempts() *remote.Attempts {
	a := d.pull.src.Attempts()
	a.OnRetry = func(err error) { d.emit(Event{Kind: Retry, Bytes: d.partial.Have(), Err: err}) }
	return a
}

// fetchSequential fetches the missing bytes with one request at a time, and a single one unless it is interrupted.
func (d *download) fetchSequential(ctx context.Context) error {
	if err := acquire(ctx, d.pull.requestSlots); err != nil {
		return err
	}
	defer func() { <-d.pull.requestSlots }()
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
		if d.partial.Have() > before {
			a.Reset()
		}
		if errors.Is(err, errNoRanges) && ranged {
			ranged = false
			continue
		}
		if err == nil {
			continue
		}
		if err = a.Backoff(ctx, err); err != nil {
			return err
		}
	}
}
