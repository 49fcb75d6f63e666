package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ingotml/ingot/manifest"
)

// tuning is what decides how a blob is fetched.
type tuning struct {
	singleBelow     int64         // smaller blobs come in one piece
	singleBusyBelow int64         // so do those up to here while others keep all requests busy: what comes in order is read once
	minPart         int64         // others in parts of at least
	maxPart         int64         // and at most this size
	stallTimeout    time.Duration // a request without a byte for so long is asked again
	headerTimeout   time.Duration // one without an answer
	buffer          int           // bytes that are written at a time, at most
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

// sizeError says that a registry has another number of bytes under a digest than the manifest says.
type sizeError struct {
	want, got int64 // got is -1 for more
}

func (e *sizeError) Error() string {
	if e.got < 0 {
		return fmt.Sprintf("the registry sends more than the %d bytes that the manifest says: %v", e.want, ErrDigest)
	}
	return fmt.Sprintf("the registry has %d bytes, the manifest says %d: %v", e.got, e.want, ErrDigest)
}

func (e *sizeError) Is(target error) bool { return target == ErrDigest }

// download is a blob that is being fetched.
type download struct {
	*puller
	pullBlob
	partial *manifest.Partial
}

// fetch brings one blob into the store. What does not match its digest or size is thrown away, and fetched once more, which
// passes mirrors by.
func (p *puller) fetch(ctx context.Context, b pullBlob) error {
	first := Begin
	for tries := 0; ; {
		had, err := p.fetchOnce(ctx, b, first)
		var wrong *manifest.MismatchError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &wrong) && had > 0:
			// What an earlier run has left may be to blame: the registry's tries are not counted.
		case errors.Is(err, manifest.ErrNoSpace):
			return fmt.Errorf("%s: %w: free some space and pull again, which goes on from here", p.s.Root(), manifest.ErrNoSpace)
		case !errors.Is(err, manifest.ErrCorrupt) && !errors.Is(err, ErrDigest):
			return fmt.Errorf("blob %s (%s): %w", b.Digest, b.label, err)
		case tries == 0:
			tries++
		case wrong != nil:
			return fmt.Errorf("blob %s (%s, %d bytes): the registry sends bytes with digest %s, twice: %w", b.Digest, b.label, b.Size, wrong.Got, ErrDigest)
		default:
			return fmt.Errorf("blob %s (%s): %w", b.Digest, b.label, err)
		}
		first = Moved
		p.emit(b, Event{Kind: Retry, Err: err})
	}
}

// fetchOnce fetches what is missing of a blob, and commits it. first is the kind of event that begins it, and had what was there
// before.
func (p *puller) fetchOnce(ctx context.Context, b pullBlob, first EventKind) (had int64, err error) {
	part, err := p.s.OpenPartial(ctx, b.Digest, b.Size, func() { p.emit(b, Event{Kind: Waiting}) })
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
		if errors.Is(err, ErrDigest) {
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

// fill fetches what is missing while it holds a place among the active ones. The hash follows what arrives.
func (d *download) fill(ctx context.Context, first EventKind) error {
	if err := acquire(ctx, d.blobSlots); err != nil {
		return err
	}
	defer func() { <-d.blobSlots }()
	had := d.partial.Have()
	d.emit(Event{Kind: first, Bytes: had})
	parts := d.Size >= d.tune.singleBelow && (d.Size > d.tune.singleBusyBelow || d.remaining.Load() <= int64(cap(d.requestSlots)))
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

// request fetches what is missing, in parts where the server serves them.
func (d *download) fetchMissing(ctx context.Context, parts bool) error {
	if parts {
		err := d.fetchParallel(ctx)
		if !errors.Is(err, errNoRanges) {
			return err
		}
	}
	return d.fetchSequential(ctx)
}

func (d *download) emit(e Event) { d.puller.emit(d.pullBlob, e) }

// attempts are those of one request for the blob, told as they are made.
func (d *download) attempts() *attempts {
	a := d.c.attempts()
	a.onRetry = func(err error) { d.emit(Event{Kind: Retry, Bytes: d.partial.Have(), Err: err}) }
	return a
}

// inOne fetches what is missing by one request after the other: by one alone, unless it is interrupted.
func (d *download) fetchSequential(ctx context.Context) error {
	if err := acquire(ctx, d.requestSlots); err != nil {
		return err
	}
	defer func() { <-d.requestSlots }()
	a := d.attempts()
	ranged := true
	for {
		missing := d.partial.Missing()
		if len(missing) == 0 {
			return nil
		}
		want := missing[0]
		if !ranged {
			want = manifest.Range{Start: 0, End: d.Size}
		}
		before := d.partial.Have()
		err := d.getRange(ctx, want, nil, d.partial.WriteAt)
		if d.partial.Have() > before {
			a.reset()
		}
		if errors.Is(err, errNoRanges) && ranged {
			ranged = false
			continue
		}
		if err == nil {
			continue
		}
		if err = a.backoff(ctx, err); err != nil {
			return err
		}
	}
}
