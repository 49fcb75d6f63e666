package fsck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/index"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/ingotml/ingot/manifest/store/lock"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// scan lists the blobs and reports stray files among them.
func (c *checker) scan(ctx context.Context) error {
	c.files = map[digest.Digest]int64{}
	c.bad = map[digest.Digest]*Problem{}
	top, err := os.ReadDir(c.s.Path(ocispec.ImageBlobsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range top {
		if !e.IsDir() { // a folder holds blobs of another digest algorithm, written by another tool
			c.reportStray(ocispec.ImageBlobsDir+"/"+e.Name(), e)
		}
	}
	entries, err := os.ReadDir(c.s.Path(store.BlobsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := store.BlobsDir + "/" + e.Name()
		d := digest.NewDigestFromEncoded(digest.SHA256, e.Name())
		if !manifest.ValidDigest(d) {
			c.reportStray(path, e)
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		c.files[d] = info.Size()
		if !info.Mode().IsRegular() {
			c.reportCorrupt(d, "it is not a file")
		} else if info.Mode().Perm()&0o222 != 0 {
			c.reportMode(d, info.Mode())
		}
	}
	return nil
}

func (c *checker) reportCorrupt(d digest.Digest, detail string) {
	c.bad[d] = c.addProblem(ProblemCorrupt, Problem{Digest: d, Detail: detail})
}

// reportMode reports a writable blob. It restores the mode immediately, so that a blob whose mode also forbids reading
// can be hashed afterwards.
func (c *checker) reportMode(d digest.Digest, mode fs.FileMode) {
	p := c.addProblem(ProblemMode, Problem{Digest: d, Detail: fmt.Sprintf("mode is %04o, not 0444", mode.Perm())})
	if !c.o.Repair {
		return
	}
	if err := os.Chmod(c.s.BlobPath(d), 0o444); err != nil {
		p.Actions = append(p.Actions, err.Error())
		return
	}
	p.Actions, p.Fixed = append(p.Actions, "mode restored"), true
}

func (c *checker) reportStray(path string, e fs.DirEntry) {
	info, err := e.Info()
	if err != nil || c.s.Now().Sub(info.ModTime()) <= ingest.StrayAge {
		return
	}
	c.addProblem(ProblemStray, Problem{Path: path, Detail: fmt.Sprintf("not a blob, %d bytes", info.Size())})
}

// hash hashes every blob and compares the result with its name.
func (c *checker) hash(ctx context.Context) error {
	begun := time.Now()
	var total int64
	var blobs []digest.Digest
	for d, size := range c.files {
		if c.bad[d] == nil {
			blobs = append(blobs, d)
			total += size
		}
	}
	c.report.Blobs = len(blobs)
	limit := c.o.Parallel
	if limit <= 0 {
		limit = runtime.GOMAXPROCS(0)
	}
	var mu sync.Mutex
	progress := func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		c.report.Bytes += n
		if c.o.Progress != nil {
			c.o.Progress(c.report.Bytes, total)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for _, d := range blobs {
		group.Go(func() error {
			err := c.s.HashBlob(ctx, d, progress)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				detail := strings.TrimPrefix(err.Error(), fmt.Sprintf("blob %s: ", d))
				c.reportCorrupt(d, strings.TrimSuffix(detail, ": "+manifest.ErrCorrupt.Error()))
			}
			return nil
		})
	}
	err := group.Wait()
	c.report.Hashing = time.Since(begun)
	return err
}

// follow traverses everything reachable from the index. It is called again after manifests were repaired.
func (c *checker) follow(ctx context.Context) error {
	c.needs, c.names = map[digest.Digest]*need{}, map[digest.Digest][]manifest.Name{}
	c.report.Models = 0
	for _, d := range c.index.Manifests {
		if name, ok := index.NameOf(d); ok {
			c.report.Models++
			c.names[d.Digest] = append(c.names[d.Digest], name)
		}
	}
	c.checkEntries()
	visits, err := c.visits(ctx)
	if err != nil {
		return err
	}
	for _, v := range visits {
		if err := ctx.Err(); err != nil {
			return err
		}
		v.manifest(v.root, false, 0)
	}
	for d, n := range c.needs {
		if _, there := c.files[d]; !there && n.required && c.bad[d] == nil {
			detail := fmt.Sprintf("%s of %d bytes is missing", kindOf(n), n.desc.Size)
			c.addProblem(ProblemMissing, Problem{Digest: d, Detail: detail})
		}
	}
	return nil
}

func kindOf(n *need) string {
	if n.manifest {
		return "a manifest"
	}
	return "a blob"
}

// visit is the traversal of one manifest of the index, under all of its names.
type visit struct {
	c       *checker
	number  int // in order of the index
	root    ocispec.Descriptor
	labels  []string
	name    manifest.Name   // the first one; zero if it has none
	hosts   []manifest.Name // names to fetch its blobs from
	partial bool            // blobs may be absent under each of its names
}

// visits groups the entries of the index by manifest. The blobs of a referrer can also be fetched from its subject's
// sources.
func (c *checker) visits(ctx context.Context) (list []*visit, err error) {
	type key struct {
		digest    digest.Digest
		mediaType string
	}
	known := map[key]*visit{}
	hosts := map[digest.Digest][]manifest.Name{}
	for _, d := range c.index.Manifests {
		hosts[d.Digest] = append(hosts[d.Digest], sources(d)...)
	}
	for _, d := range c.index.Manifests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !manifest.ValidDigest(d.Digest) {
			continue // written by another tool, with a digest algorithm that this program does not support
		}
		v := known[key{d.Digest, d.MediaType}]
		if v == nil {
			v = &visit{c: c, number: len(list), root: d, partial: true, hosts: slices.Clone(hosts[d.Digest])}
			if c.wrongSize(d) {
				v.root.Size = c.files[d.Digest]
			}
			known[key{d.Digest, d.MediaType}] = v
			list = append(list, v)
		}
		_, partial := d.Annotations[index.AnnotationPartial]
		v.partial = v.partial && partial
		if name, ok := index.NameOf(d); ok {
			if v.name == (manifest.Name{}) {
				v.name = name
			}
			v.labels = append(v.labels, name.String())
			continue
		}
		label, subject := index.Label(d), c.subjectOf(d)
		if subject != "" {
			label = "referrer of " + manifest.Clip(string(subject))
			if names := c.names[subject]; len(names) > 0 {
				label = "referrer of " + names[0].String()
			}
			v.hosts = append(v.hosts, hosts[subject]...)
		}
		v.labels = append(v.labels, label)
	}
	return list, nil
}

// subjectOf returns the subject of an entry without a name, or "".
func (c *checker) subjectOf(d ocispec.Descriptor) digest.Digest {
	subject := digest.Digest(d.Annotations[index.AnnotationSubject])
	if _, there := c.files[d.Digest]; subject == "" && there && c.bad[d.Digest] == nil {
		if doc, err := c.s.References(d); err == nil && doc.Subject != nil {
			subject = doc.Subject.Digest
		}
	}
	return subject
}

// sources lists the names under which registries should have an entry's manifest: its own name and the repositories it
// was pushed to.
func sources(d ocispec.Descriptor) []manifest.Name {
	var list []manifest.Name
	if name, ok := index.NameOf(d); ok && name.Host != "" {
		list = append(list, name)
	}
	for _, repository := range index.PushedTo(d) {
		if name, err := manifest.ParseName(repository + "@" + string(d.Digest)); err == nil && name.Host != "" {
			list = append(list, name)
		}
	}
	return list
}

// need records that the entry needs a blob.
func (v *visit) need(d ocispec.Descriptor, optional bool) *need {
	n := v.c.needs[d.Digest]
	if n == nil {
		n = &need{desc: d, users: map[*visit]bool{}}
		v.c.needs[d.Digest] = n
	}
	n.users[v] = true
	n.required = n.required || !optional
	if v.c.wrongSize(d) {
		v.c.addProblem(ProblemManifest, Problem{Path: v.labels[0] + " " + string(d.Digest), Models: v.labels,
			Detail: fmt.Sprintf("the manifest says that blob %s has %d bytes, but it has %d",
				d.Digest, d.Size, v.c.files[d.Digest])})
	}
	return n
}

func (v *visit) manifest(d ocispec.Descriptor, optional bool, depth int) {
	n := v.need(d, optional)
	if n.manifest && depth > 0 || depth > manifest.MaxIndexDepth {
		return
	}
	n.manifest = true
	if _, there := v.c.files[d.Digest]; !there || v.c.bad[d.Digest] != nil {
		return
	}
	doc, err := v.c.s.References(d)
	if err != nil {
		v.reportInvalid(d.Digest, err)
		return
	}
	for _, list := range [][]ocispec.Descriptor{doc.Layers, doc.Blobs} {
		for _, l := range list {
			v.link(l)
		}
	}
	if doc.Config != nil {
		v.link(*doc.Config)
	}
	for _, child := range doc.Manifests {
		if manifest.ValidDigest(child.Digest) {
			v.manifest(child, true, depth+1)
		}
	}
	if doc.Config != nil {
		v.decode(d.Digest, *doc.Config)
	}
}

func (v *visit) link(d ocispec.Descriptor) {
	if manifest.ValidDigest(d.Digest) {
		v.need(d, v.partial)
		return
	}
	v.c.addProblem(ProblemManifest, Problem{
		Path: v.labels[0], Models: v.labels, Detail: fmt.Sprintf("%q is not a sha256 digest",
			manifest.Clip(string(d.Digest))),
	})
}

// decode reports a model image that cannot be decoded. It ignores manifests of other kinds.
func (v *visit) decode(d digest.Digest, config ocispec.Descriptor) {
	if size, there := v.c.files[config.Digest]; !there || v.c.bad[config.Digest] != nil || size > manifest.MaxConfigSize {
		return
	}
	if _, err := v.c.s.ReadEntry(v.name, d); err != nil && !errors.Is(err, manifest.ErrUnknownManifest) {
		v.reportInvalid(d, err)
	}
}

func (v *visit) reportInvalid(d digest.Digest, err error) {
	v.c.addProblem(ProblemManifest, Problem{Digest: d, Models: v.labels, Detail: err.Error()})
}

// checkIngest counts the resumable runs in ingest/ and reports abandoned files.
func (c *checker) checkIngest() error {
	left, err := ingest.Leftovers(c.s)
	if err != nil {
		return err
	}
	others := slices.ContainsFunc(c.s.Locks().Holders(), func(h lock.Holder) bool { return h.PID != os.Getpid() })
	for _, l := range left {
		path := store.IngestDir + "/" + l.Name
		switch {
		case l.Resumable():
			c.report.Unfinished++
			c.report.UnfinishedBytes += l.Bytes
		case c.s.Now().Sub(l.Used) <= ingest.StrayAge,
			(l.Kind == ingest.LeftTemporary || l.Kind == ingest.LeftUploadFolder) && others,
			l.Kind == ingest.LeftPendingUpload && ingest.IsUploading(c.s, l),
			l.Kind == ingest.LeftUse && ingest.IsUsed(c.s, l):
		case l.Kind == ingest.LeftOther:
			detail := fmt.Sprintf("not a file of the store, %d bytes", l.Bytes)
			c.addProblem(ProblemStray, Problem{Path: path, Detail: detail})
		default:
			detail := fmt.Sprintf("its writer has exited, %d bytes", l.Bytes)
			c.addProblem(ProblemLeftover, Problem{Path: path, Detail: detail, leftover: l})
		}
	}
	return nil
}
