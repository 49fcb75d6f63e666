package shards

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/models/shard"
	"github.com/opencontainers/go-digest"
)

// note says which ranges a file has of a blob. It is there before the file; a blob without one is whole.
type note struct {
	Parts []notedPart `json:"parts"`
}

// notedPart is a list of ranges that were written.
type notedPart struct {
	Ranges  string `json:"ranges"`  // SHA-256 of the list, which may be long
	Content string `json:"content"` // SHA-256 of their bytes, in order
}

func (f *Folder) notePath(d digest.Digest) string {
	return f.parts.Path(store.IngestDir, d.Encoded()+".parts.json")
}

// readNote returns the note of a blob, and whether there is one.
func (f *Folder) readNote(d digest.Digest) (n note, partial bool) {
	b, err := disk.ReadLimited(f.notePath(d), 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return n, false
	}
	if err == nil && json.Unmarshal(b, &n) != nil {
		n = note{} // its ranges are fetched again
	}
	return n, true
}

func (f *Folder) writeNote(d digest.Digest, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	file, err := f.parts.NewTemp("parts-*")
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if err == nil {
		err = disk.Publish(file, 0o644, f.notePath(d))
	}
	if err != nil {
		file.Close()
		os.Remove(file.Name())
	}
	return err
}

// listSum identifies a list of ranges.
func listSum(ranges []shard.Range) string {
	var b []byte
	for _, r := range ranges {
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(r.Begin)), uint64(r.End))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// planRanges finds out whether ranges of a blob are missing or damaged.
func (p *preparation) planRanges(l manifest.Layer, ranges []shard.Range) error {
	list := listSum(ranges)
	n, _ := p.readNote(l.Digest)
	i := slices.IndexFunc(n.Parts, func(part notedPart) bool { return part.Ranges == list })
	if i >= 0 {
		good, err := p.check(l, ranges, n.Parts[i])
		if good || err != nil {
			return err
		}
		n.Parts = slices.Delete(n.Parts, i, i+1)
	}
	p.later(total(ranges), func() error { return p.fetchRanges(l, ranges, n) })
	return nil
}

// check reports whether the bytes of ranges are what was fetched. It reads them once for each process.
func (p *preparation) check(l manifest.Layer, ranges []shard.Range, part notedPart) (bool, error) {
	p.Folder.mu.Lock()
	known := p.checked[part.Content]
	p.Folder.mu.Unlock()
	if known && p.parts.HasBlob(l.Digest, l.Size) {
		return true, nil
	}
	f, err := os.Open(p.parts.BlobPath(l.Digest))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha256.New()
	for _, r := range ranges {
		if n, err := io.Copy(sum, io.NewSectionReader(f, r.Begin, r.Len())); err != nil || n < r.Len() {
			return false, err
		}
	}
	good := hex.EncodeToString(sum.Sum(nil)) == part.Content
	if good {
		p.remember(part)
	}
	return good, nil
}

func (p *preparation) remember(part notedPart) {
	p.Folder.mu.Lock()
	defer p.Folder.mu.Unlock()
	p.checked[part.Content] = true
}

// fetchRanges writes ranges of a blob to its file, whose other bytes may be holes.
func (p *preparation) fetchRanges(l manifest.Layer, ranges []shard.Range, n note) (err error) {
	if err := p.parts.Space().Check(total(ranges)); err != nil {
		return err
	}
	if err := p.parts.MakeBlobsDir(); err != nil {
		return err
	}
	if err := p.writeNote(l.Digest, n); err != nil { // before the file: it says that the file is not whole
		return err
	}
	f, err := os.OpenFile(p.parts.BlobPath(l.Digest), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(l.Size); err != nil {
		return err
	}
	sum := sha256.New()
	err = p.from.ranges(p.ctx, l.Digest, l.Size, ranges, func(r shard.Range, content io.Reader) error {
		to := io.MultiWriter(io.NewOffsetWriter(f, r.Begin), sum)
		written, err := io.Copy(to, content)
		p.report(written)
		return err
	})
	if err != nil {
		return p.parts.Space().FullDisk(err)
	}
	if err := disk.Sync(f); err != nil {
		return err
	}
	part := notedPart{listSum(ranges), hex.EncodeToString(sum.Sum(nil))}
	n.Parts = append(n.Parts, part)
	p.remember(part)
	return p.writeNote(l.Digest, n)
}

// fetchWhole fetches a blob and checks its digest.
func (p *preparation) fetchWhole(l manifest.Layer) error {
	if err := p.parts.Space().Check(l.Size); err != nil {
		return err
	}
	response, err := p.from.get(p.ctx, "blobs", l.Digest, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	w, err := p.parts.NewBlob(p.ctx)
	if err != nil {
		return err
	}
	defer w.Abort()
	content := io.TeeReader(io.LimitReader(response.Body, l.Size+1), reporter(p.report))
	if _, err := io.Copy(w, content); err != nil {
		return fmt.Errorf("fetch %s from rank 0: %w", l.Digest, p.parts.Space().FullDisk(err))
	}
	if _, partial := p.readNote(l.Digest); partial { // the blob replaces a file with ranges of it
		if err := p.removePart(l.Digest); err != nil {
			return err
		}
	}
	got, _, err := w.Commit()
	if err == nil && got != l.Digest {
		err = errors.Join(manifest.Corrupt(l.Digest, got), os.Remove(p.parts.BlobPath(got)))
	}
	return err
}

// removePart removes a file with ranges of a blob, and then its note.
func (f *Folder) removePart(d digest.Digest) error {
	for _, path := range []string{f.parts.BlobPath(d), f.notePath(d)} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// reporter counts the bytes that are written to it.
type reporter func(int64)

func (r reporter) Write(b []byte) (int, error) {
	r(int64(len(b)))
	return len(b), nil
}
