package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Defaults of [PushOptions].
const (
	DefaultChunkSize   = 64 << 20
	DefaultUploadStall = 30 * time.Second
)

// PushOptions are those of [Client.Push].
type PushOptions struct {
	Format      string        // of the manifest, such as [manifest.FormatOllama]; empty: as it is in the store
	NoReferrers bool          // signatures and other manifests that refer to the model stay here
	ChunkSize   int64         // bytes of a large blob that go into one request; 0: DefaultChunkSize
	Stall       time.Duration // how long a registry may take no byte before the connection is given up; 0: DefaultUploadStall
}

// Bounds of what is looked at for blobs that can be mounted.
const (
	maxMountCandidates = 64 // manifests that are read
	maxMountFrom       = 4  // repositories that a token is asked for, and that are tried for one blob
)

// aheadFactor is how many uploads are open for each blob whose bytes move: a registry takes a while to open one, and after the
// last byte to put the blob where it belongs.
const uploadsPerSlot = 2

// Push sends the model called src to the registry and repository that dst names, under its tag, and gives the digest of
// its manifest. What the registry has is not sent; what another of its repositories has is mounted, where the store knows one or the
// registry finds it. The manifest goes last, byte for byte as the store has it. A push that ended early goes on where it was, in the
// middle of a blob too: notes in the store say where.
//
// A model that is not there is a [manifest.NotFoundError], a dst without a host an [ErrNoHost]. A blob that the store
// lacks and the registry too is a [manifest.ErrBlobMissing], one that is damaged a [manifest.ErrCorrupt].
func (c *Client) Push(ctx context.Context, s *manifest.Store, src, dst manifest.Name, opts PushOptions) (digest.Digest, error) {
	d, err := c.push(ctx, s, src, dst, opts)
	if err != nil {
		return "", fmt.Errorf("push %s to %s: %w", src, dst, err)
	}
	return d, nil
}

func (c *Client) push(ctx context.Context, s *manifest.Store, src, dst manifest.Name, opts PushOptions) (digest.Digest, error) {
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
	if p.persistSessions {
		_ = s.NotePushed(ctx, src, dst) // costs a later push time, and nothing else
	}
	return d, nil
}

// inFormat gives the manifest that is pushed, and the config that belongs to it when the store does not have that.
func inFormat(ctx context.Context, s *manifest.Store, src manifest.Name, format string) (m Manifest, config []byte, err error) {
	if format == "" {
		raw, err := s.ResolveRaw(ctx, src)
		if err != nil {
			return m, nil, err
		}
		return Manifest{raw.Descriptor.MediaType, raw.Descriptor.Digest, raw.Bytes}, nil, nil
	}
	e, err := s.Resolve(ctx, src)
	if err != nil {
		return m, nil, err
	}
	mediaType, b, config, err := s.Encode(ctx, e, format)
	return Manifest{mediaType, digest.FromBytes(b), b}, config, err
}

// newPusher begins a push. Nothing that is being pushed is collected before its release.
func (c *Client) newPusher(ctx context.Context, s *manifest.Store, dst manifest.Name, opts PushOptions) (p *pusher, release func(), err error) {
	opts.ChunkSize = cmp.Or(max(opts.ChunkSize, 0), DefaultChunkSize)
	opts.Stall = cmp.Or(max(opts.Stall, 0), DefaultUploadStall)
	r, err := c.repository(dst, push)
	if err != nil {
		return nil, nil, err
	}
	p = &pusher{c: c, s: s, dst: dst, r: r, opts: opts, sendSlots: make(chan struct{}, c.opts.Concurrency)}
	p.chunkSize.Store(opts.ChunkSize)
	release, err = s.Lock(ctx)
	switch {
	case err == nil:
		p.persistSessions = true
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS): // one that cannot be written to keeps no notes either
		release = func() {}
	default:
		return nil, nil, err
	}
	return p, release, nil
}

// pusher is one push.
type pusher struct {
	c               *Client
	s               *manifest.Store
	dst             manifest.Name
	r               *repository
	opts            PushOptions
	persistSessions bool // sessions can be kept in the store

	mounter   *repository // r with leave to read where blobs may be mounted from; nil when there is nothing to mount
	noChunks  atomic.Bool // the registry takes blobs whole only
	noMount   atomic.Bool // the registry takes no mount without from
	noFrom    atomic.Bool // nothing may be mounted from other repositories
	chunkSize atomic.Int64
	sendSlots chan struct{} // holds what is being sent
}

// blob is something to push.
type blob struct {
	ocispec.Descriptor
	name string   // for people
	data []byte   // the blob itself where the store may not have it; else nil
	from []string // repositories of the same registry that should have it
}

// run pushes a manifest and all that it needs. config may be nil: then the store has it.
func (p *pusher) run(ctx context.Context, root Manifest, config []byte) (digest.Digest, error) {
	ref := p.dst.Tag
	if ref == "" {
		ref = string(p.dst.Digest)
	}
	if p.dst.Digest != "" && p.dst.Digest != root.Digest {
		return "", fmt.Errorf("the model has digest %s, not the one of the name: %w", root.Digest, ErrDigest)
	}
	docs, err := p.gather(nil, root, 0)
	if err != nil {
		return "", err
	}
	blobs, err := blobsOf(docs)
	if err != nil {
		return "", err
	}
	attached, err := p.attached(ctx, root.Digest)
	if err != nil {
		return "", err
	}
	all, err := blobsOf(append(slices.Clone(docs), manifestsOf(attached)...))
	if err != nil {
		return "", err
	}
	var total int64
	for i, b := range all {
		total += b.Size
		if config != nil && b.Digest == digest.FromBytes(config) {
			all[i].data = config
		}
	}
	tagged, err := p.r.headManifest(ctx, ref)
	if err != nil {
		return "", err
	}
	p.c.emit(Event{Kind: Plan, Total: total}) // when the registry has answered: what is refused has no beginning
	known := tagged == root.Digest
	if !known && ref != string(root.Digest) { // it may be there under another tag
		d, err := p.r.headManifest(ctx, string(root.Digest))
		known = err == nil && d == root.Digest
	}
	send := all
	if known { // and so is all that it names
		for _, b := range blobs {
			p.present(b)
		}
		send = slices.DeleteFunc(slices.Clone(all), func(b blob) bool {
			return slices.ContainsFunc(blobs, func(k blob) bool { return k.Digest == b.Digest })
		})
	}
	for again := false; ; again = true {
		if err := p.sendBlobs(ctx, send); err != nil {
			return "", err
		}
		err := p.sendManifests(ctx, docs, attached, ref, tagged)
		if err == nil {
			return root.Digest, nil
		}
		// It may have dropped a blob meanwhile, or the manifest that it had before is not whole.
		var status *StatusError
		if again || !errors.As(err, &status) || status.Code != "MANIFEST_BLOB_UNKNOWN" && status.Code != "BLOB_UNKNOWN" {
			return "", err
		}
		send = all
	}
}

// Most levels of an index of indexes.
const maxDepth = 4

// gather adds a manifest to a list, after those manifests of the store that it lists itself.
func (p *pusher) gather(docs []Manifest, m Manifest, depth int) ([]Manifest, error) {
	if depth > maxDepth || len(docs) > limits.IndexManifests {
		return nil, fmt.Errorf("manifest %s: too many manifests in manifests: %w", m.Digest, manifest.ErrTooLarge)
	}
	var err error
	if m.MediaType, err = manifest.CheckType(m.MediaType, m.Bytes); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", m.Digest, err)
	}
	var index struct{ Manifests []ocispec.Descriptor }
	if err := json.Unmarshal(m.Bytes, &index); err != nil {
		return nil, fmt.Errorf("manifest %s: %v: %w", m.Digest, err, manifest.ErrInvalidManifest)
	}
	for _, child := range index.Manifests {
		if slices.ContainsFunc(docs, func(m Manifest) bool { return m.Digest == child.Digest }) {
			continue
		}
		if child.Digest.Algorithm() != digest.SHA256 {
			continue // the store has none under other digests
		}
		b, err := p.s.ReadBlob(child.Digest, manifest.MaxManifestSize)
		if errors.Is(err, manifest.ErrBlobMissing) {
			continue // tools copy single platforms
		}
		if err != nil {
			return nil, err
		}
		if docs, err = p.gather(docs, Manifest{child.MediaType, child.Digest, b}, depth+1); err != nil {
			return nil, err
		}
	}
	return append(docs, m), nil
}

// blobsOf lists what manifests name, each digest once, the largest first, so that none of them is alone at the end.
func blobsOf(docs []Manifest) ([]blob, error) {
	var list []blob
	seen := map[digest.Digest]bool{}
	for _, m := range docs {
		blobs, err := manifest.Blobs(m.Bytes)
		if err != nil {
			return nil, err
		}
		for _, d := range blobs {
			if !seen[d.Digest] {
				seen[d.Digest] = true
				list = append(list, blob{Descriptor: d, name: layerName(d)})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b blob) int { return cmp.Compare(b.Size, a.Size) })
	return list, nil
}

// layerName is what people may know a blob by.
func layerName(d ocispec.Descriptor) string {
	for _, key := range []string{"org.cncf.model.filepath", ocispec.AnnotationTitle} {
		if name := d.Annotations[key]; name != "" {
			return clip(name)
		}
	}
	return ""
}

// present tells that the registry has a blob.
func (p *pusher) present(b blob) {
	p.c.emit(Event{Kind: Present, Digest: b.Digest, Name: b.name, Bytes: b.Size, Total: b.Size})
	if p.persistSessions {
		p.s.DropSession(p.sessionKey(b.Digest))
	}
}

// sendBlobs asks for each blob whether the registry has it, and sends it where it has not. While the bytes of some move, others
// are asked for.
func (p *pusher) sendBlobs(ctx context.Context, blobs []blob) error {
	p.findMountSources(ctx, blobs)
	send, ctx := errgroup.WithContext(ctx)
	send.SetLimit(uploadsPerSlot * p.c.opts.Concurrency)
	for _, b := range blobs {
		send.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			there, err := p.headBlob(ctx, b)
			switch {
			case err != nil:
				return fmt.Errorf("blob %s: %w", b.Digest, err)
			case there:
				p.present(b)
				return nil
			}
			return p.upload(ctx, b)
		})
	}
	return send.Wait()
}

// findHomes fills in where blobs may be mounted from: repositories of the same host that models of the store came from, or
// were pushed to.
func (p *pusher) findMountSources(ctx context.Context, blobs []blob) {
	homes, err := p.s.Homes(ctx, p.dst.Host)
	if err != nil {
		return // they save time, and nothing depends on them
	}
	at := make(map[digest.Digest]int, len(blobs))
	for i, b := range blobs {
		at[b.Digest] = i
	}
	var from []string
	for _, h := range homes[:min(len(homes), maxMountCandidates)] {
		if h.Path == p.dst.Path || !slices.Contains(from, h.Path) && len(from) == maxMountFrom {
			continue
		}
		for _, d := range p.heldBy(ctx, h) {
			i, wanted := at[d.Digest]
			if !wanted || slices.Contains(blobs[i].from, h.Path) {
				continue
			}
			blobs[i].from = append(blobs[i].from, h.Path)
			if !slices.Contains(from, h.Path) {
				from = append(from, h.Path)
			}
		}
	}
	if len(from) > 0 {
		p.mounter, _ = p.c.repository(p.dst, push, from...)
	}
}

// heldBy lists the blobs of a model, and of what refers to it, which went where the model did.
func (p *pusher) heldBy(ctx context.Context, h manifest.Home) []ocispec.Descriptor {
	list := []digest.Digest{h.Manifest}
	referrers, _ := p.s.Referrers(ctx, h.Manifest, "")
	for _, d := range referrers {
		list = append(list, d.Digest)
	}
	var held []ocispec.Descriptor
	for _, d := range list {
		if doc, err := p.s.ReadBlob(d, manifest.MaxManifestSize); err == nil {
			blobs, _ := manifest.Blobs(doc)
			held = append(held, blobs...)
		}
	}
	return held
}

// sendManifests puts manifests, the one that the name is for last, and by its digest before what refers to it: whoever sees the tag
// sees a signature too. The others go by their digest.
func (p *pusher) sendManifests(ctx context.Context, docs []Manifest, attached []attachment, ref string, tagged digest.Digest) error {
	root := docs[len(docs)-1]
	if tagged == root.Digest {
		return p.sendAttached(ctx, attached)
	}
	if len(attached) == 0 {
		docs = docs[:len(docs)-1]
	}
	for _, m := range docs {
		if err := p.sendManifest(ctx, string(m.Digest), m); err != nil {
			return err
		}
	}
	if err := p.sendAttached(ctx, attached); err != nil || ref == string(root.Digest) && len(attached) > 0 {
		return err
	}
	return p.sendManifest(ctx, ref, root)
}

func (p *pusher) sendManifest(ctx context.Context, ref string, m Manifest) error {
	_, err := p.r.putManifest(ctx, ref, m)
	var status *StatusError
	switch {
	case errors.As(err, &status) && status.Status == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("the registry does not take a manifest of %d bytes: %w", len(m.Bytes), err)
	case err != nil:
		return fmt.Errorf("manifest %s: %w", m.Digest, err)
	}
	return nil
}
