package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/resume"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Defaults for [PushOptions].
const (
	DefaultChunkSize   = 64 << 20
	DefaultUploadStall = 30 * time.Second
)

// PushOptions configure [Client.Push].
type PushOptions struct {
	Format      string // of the manifest, such as [manifest.FormatOllama]; empty: as stored
	NoReferrers bool   // do not push signatures and other referrers
	// ChunkSize is the bytes per request; 0: the setting of the host, else DefaultChunkSize, and small blobs are not
	// resumable.
	ChunkSize int64
	Stall     time.Duration // abort a connection that accepts next to nothing for this long; 0: DefaultUploadStall
}

// uploadsPerSlot is the number of open uploads for each send slot: opening a session and committing a blob take a
// registry a while, during which another upload uses the slot.
const uploadsPerSlot = 2

// looksPerSlot is the number of blobs that are asked for at a time, for each send slot, where nothing is sent.
const looksPerSlot = 6

// Push uploads the model src to the registry and repository of dst, under its tag, and returns the digest of its
// manifest. Blobs that the registry has are skipped. A blob of another repository of the registry is mounted if the
// store knows that repository or the registry finds it. The manifest goes last, byte for byte as stored. An interrupted
// push resumes, also in the middle of a blob, from the session records in the store.
//
// The error is a [manifest.ErrNotFound] if src does not exist, a [remote.ErrNoHost] if dst has no host, a
// [manifest.ErrBlobMissing] if neither the store nor the registry has a blob, and a [manifest.ErrCorrupt] if a stored
// blob is damaged.
func (c *Client) Push(ctx context.Context, s *store.Store, src, dst manifest.Name,
	opts PushOptions) (digest.Digest, error) {
	d, err := c.push(ctx, s, src, dst, opts)
	if err != nil {
		return "", fmt.Errorf("push %s to %s: %w", src, dst, err)
	}
	return d, nil
}

func (c *Client) push(ctx context.Context, s *store.Store, src, dst manifest.Name,
	opts PushOptions) (digest.Digest, error) {
	p, release, err := c.newPusher(ctx, s, dst, opts)
	if err != nil {
		return "", err
	}
	defer release()
	m, config, err := inFormat(ctx, s, src, opts.Format)
	if err != nil {
		return "", err
	}
	d, err := p.run(ctx, m, config)
	if err != nil {
		return "", err
	}
	if p.records != nil {
		_ = s.NotePushed(ctx, src, dst) // only saves time in a later push
	}
	return d, nil
}

// inFormat returns the manifest to push, and its config if the store does not have it.
func inFormat(ctx context.Context, s *store.Store, src manifest.Name,
	format string) (m remote.Manifest, config []byte, err error) {
	if format == "" {
		raw, err := s.ResolveRaw(ctx, src)
		if err != nil {
			return m, nil, err
		}
		return remote.Manifest{MediaType: raw.Descriptor.MediaType, Digest: raw.Descriptor.Digest, Bytes: raw.Bytes}, nil, nil
	}
	e, err := s.Resolve(ctx, src)
	if err != nil {
		return m, nil, err
	}
	mediaType, b, config, err := s.Encode(ctx, e, format)
	return remote.Manifest{MediaType: mediaType, Digest: digest.FromBytes(b), Bytes: b}, config, err
}

// newPusher prepares a push. It holds the store's lock until release, so that collection removes nothing that is being
// pushed.
func (c *Client) newPusher(ctx context.Context, s *store.Store, dst manifest.Name,
	opts PushOptions) (p *pusher, release func(), err error) {
	if p, err = c.preparePusher(s, dst, opts); err != nil {
		return nil, nil, err
	}
	release, writable, err := Stored{s}.Hold(ctx)
	if writable {
		p.records = s
	}
	return p, release, err
}

// preparePusher returns a pusher without session records, which the lock protects.
func (c *Client) preparePusher(s *store.Store, dst manifest.Name, opts PushOptions) (*pusher, error) {
	r, err := c.conn.Repository(dst, remote.Push)
	if err != nil {
		return nil, err
	}
	given := cmp.Or(max(opts.ChunkSize, 0), r.Setting().ChunkSize)
	opts.ChunkSize = cmp.Or(given, DefaultChunkSize)
	opts.Stall = cmp.Or(max(opts.Stall, 0), DefaultUploadStall)
	p := &pusher{c: c, s: s, from: Stored{s}, dst: dst, r: r, opts: opts, chunkGiven: given > 0,
		sendSlots: make(chan struct{}, c.Concurrency(dst.Host))}
	p.timeouts = r.Timeouts()
	return p, nil
}

// pusher is the state of one push.
type pusher struct {
	c       *Client
	s       *store.Store // nil in a copy and of files
	source  *copySource  // nil in a push
	from    Documents
	files   Files // where the blobs are, if they are not in a store; nil in other pushes
	resend  bool  // blobs are not mounted: the registry may lack what it says to have
	dst     manifest.Name
	r       *remote.Repository
	opts    PushOptions
	records *store.Store // keeps session records; nil if it is read-only

	timeouts   *waiting.Timeouts
	lacks      []string           // blobs that the registry says to lack, whatever it answers to HEAD
	chunkGiven bool               // opts.ChunkSize is not the default
	mounter    *remote.Repository // r with a token that may also pull from the mount sources; nil if there are none
	sendSlots  chan struct{}      // limits how many requests send bytes at a time
	lost       sync.Map           // optional blobs by digest that could not be sent, with the error
}

// blob is a blob to push.
type blob struct {
	ocispec.Descriptor
	name string   // for display
	data []byte   // contents, if the store may not have the blob; else nil
	path string   // file with the contents, if the store may not have the blob; else ""
	at   int64    // where the contents begin in that file
	from []string // repositories of the same registry that may have the blob

	optional bool // only attached artifacts need it
}

// run pushes a manifest and everything that it references. config is nil if the source has it.
func (p *pusher) run(ctx context.Context, root remote.Manifest, config []byte) (digest.Digest, error) {
	ref := p.dst.Tag
	if ref == "" {
		ref = string(p.dst.Digest)
	}
	if p.dst.Digest != "" && p.dst.Digest != root.Digest {
		return "", fmt.Errorf("the model has digest %s, not the digest in the name: %w", root.Digest, remote.ErrDigest)
	}
	docs, err := p.gather(ctx, nil, root, 0)
	if err != nil {
		return "", err
	}
	blobs, err := blobsOf(docs)
	if err != nil {
		return "", err
	}
	attached, unread, err := p.attached(ctx, root.Digest)
	if err != nil {
		return "", err
	}
	if err := p.skip(unread); err != nil {
		return "", err
	}
	all, err := blobsOf(append(slices.Clone(docs), manifestsOf(attached)...))
	if err != nil {
		return "", err
	}
	var total int64
	for i, b := range all {
		total += b.Size
		all[i].optional = !slices.ContainsFunc(blobs, func(k blob) bool { return k.Digest == b.Digest })
		if config != nil && b.Digest == digest.FromBytes(config) {
			all[i].data = config
		}
	}
	tagged, err := p.r.HeadManifest(ctx, ref)
	var unreadable *remote.StatusError // a role may push, but not read; a registry may fail whenever it is asked
	if err != nil && (!errors.As(err, &unreadable) || verdict.Limited(unreadable.Status, unreadable.Code)) {
		return "", err
	}
	p.c.emit(Event{Kind: Plan, Total: total}) // only after the first response: a refused push has no plan
	known := tagged == root.Digest
	if !known && unreadable == nil && ref != string(root.Digest) { // the manifest may have another tag
		d, err := p.r.HeadManifest(ctx, string(root.Digest))
		known = err == nil && d == root.Digest
	}
	send := all
	if known {
		if send, err = p.missing(ctx, all, blobs); err != nil {
			return "", err
		}
	}
	for again := false; ; again = true {
		if err := p.sendBlobs(ctx, send); err != nil {
			return "", err
		}
		if unreadable != nil && !again {
			skipped := fmt.Errorf("it does not say which manifest is %s, so it is sent: %w", ref, unreadable)
			if err := p.c.conn.Skipped(p.dst.Host, skipped); err != nil {
				return "", err
			}
		}
		err := p.sendManifests(ctx, docs, attached, ref, tagged)
		if err == nil {
			return root.Digest, nil
		}
		// The registry may have collected a blob since it was checked, or its copy of the manifest lacks blobs: push all of
		// them once.
		var status *remote.StatusError
		if again || !errors.As(err, &status) || !status.LacksBlob() {
			return "", err
		}
		send, p.lacks, p.resend = all, status.Digests, true
	}
}

// missing returns the blobs to send where the registry has the manifest of some of them: those that it has lost since,
// and the others.
func (p *pusher) missing(ctx context.Context, all, some []blob) ([]blob, error) {
	there := make([]bool, len(all))
	ask, ctx := errgroup.WithContext(ctx)
	ask.SetLimit(looksPerSlot * cap(p.sendSlots))
	for i, b := range all {
		if !slices.ContainsFunc(some, func(k blob) bool { return k.Digest == b.Digest }) {
			continue
		}
		ask.Go(func() (err error) {
			there[i], err = p.headBlob(ctx, b)
			there[i] = there[i] || p.r.Abilities().Look == remote.LookNone // its manifest has to do
			return err
		})
	}
	if err := ask.Wait(); err != nil {
		return nil, err
	}
	var list []blob
	for i, b := range all {
		if there[i] {
			p.present(b)
		} else {
			list = append(list, b)
		}
	}
	return list, nil
}

// recordKey returns the key of a blob's session record.
func (p *pusher) recordKey(d digest.Digest) digest.Digest { return resume.Key(p.dst.Host, p.r.Path, d) }

// present reports that the registry has a blob, and deletes the record of its upload.
func (p *pusher) present(b blob) {
	p.c.emit(Event{Kind: Present, Digest: b.Digest, Name: b.name, Bytes: b.Size, Total: b.Size})
	resume.Drop(p.records, p.recordKey(b.Digest))
}

// sendBlobs uploads the blobs that the registry does not have. It checks for some while it sends others.
func (p *pusher) sendBlobs(ctx context.Context, blobs []blob) error {
	p.findMountSources(ctx, blobs)
	send, ctx := errgroup.WithContext(ctx)
	send.SetLimit(uploadsPerSlot * cap(p.sendSlots))
	for _, b := range blobs {
		send.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := p.sendBlob(ctx, b)
			p.lost.Delete(b.Digest)
			if err != nil && b.optional && ctx.Err() == nil {
				p.lost.Store(b.Digest, err)
				p.c.emit(Event{Kind: Skipped, Digest: b.Digest, Name: b.name, Total: b.Size})
				return nil
			}
			return err
		})
	}
	if err := send.Wait(); err != nil {
		return err
	}
	return p.r.NoteLook()
}

// sendBlob uploads a blob if the registry does not have it.
func (p *pusher) sendBlob(ctx context.Context, b blob) error {
	there, err := p.headBlob(ctx, b)
	switch {
	case err != nil:
		return fmt.Errorf("blob %s: %w", b.Digest, err)
	case there:
		p.present(b)
		return nil
	}
	return p.upload(ctx, b)
}

// sendBytes uploads blobs that are at hand.
func (p *pusher) sendBytes(ctx context.Context, contents [][]byte) error {
	blobs := make([]blob, len(contents))
	for i, b := range contents {
		blobs[i] = blob{Descriptor: ocispec.Descriptor{Digest: digest.FromBytes(b), Size: int64(len(b))}, data: b}
	}
	return p.sendBlobs(ctx, blobs)
}
