package fsck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
)

// repair makes all repairs that need no download. The caller holds the store's lock exclusively.
func (c *checker) repair(ctx context.Context) error {
	if err := c.repairIndex(ctx); err != nil {
		return fmt.Errorf("repair the index: %w", err)
	}
	moved := false
	for _, p := range c.problems {
		switch p.Kind {
		case ProblemCorrupt, ProblemStray:
			to, err := quarantine(c.s, p.Path)
			if err != nil {
				return fmt.Errorf("move %s to %s: %w", p.Path, store.QuarantineDir, err)
			}
			moved = true
			p.Actions = append(p.Actions, "moved to "+to)
			n := c.needs[p.Digest]
			p.Fixed = n == nil || !n.required
			delete(c.files, p.Digest)
		case ProblemLeftover:
			ingest.RemoveLeftover(c.s, p.leftover)
			if _, err := os.Lstat(c.s.Path(p.Path)); err == nil {
				p.Actions = append(p.Actions, "not removed: it is in use, or permission is denied")
				continue
			}
			p.Actions, p.Fixed = append(p.Actions, "removed"), true
		}
	}
	if !moved {
		return nil
	}
	return errors.Join(disk.SyncDir(c.s.Path(store.QuarantineDir)), disk.SyncDir(c.s.Path(store.BlobsDir)))
}

// quarantine moves a file to an unused name in quarantine/.
func quarantine(s *store.Store, from string) (to string, err error) {
	if err := os.MkdirAll(s.Path(store.QuarantineDir), 0o755); err != nil {
		return "", err
	}
	for i := 1; ; i++ {
		to = store.QuarantineDir + "/" + path.Base(from)
		if i > 1 {
			to = fmt.Sprintf("%s.%d", to, i)
		}
		if _, err := os.Lstat(s.Path(to)); errors.Is(err, fs.ErrNotExist) {
			return to, atomicfile.Rename(s.Path(from), s.Path(to))
		} else if err != nil {
			return "", err
		}
	}
}

// fetch downloads corrupt and missing blobs. It downloads manifests first, because they reveal which other blobs are
// missing.
func (c *checker) fetch(ctx context.Context) error {
	if c.o.Fetch == nil {
		return nil
	}
	release, err := c.s.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	tried := map[digest.Digest]bool{}
	for {
		list := c.wanted(tried)
		if len(list) == 0 {
			return nil
		}
		for _, p := range list {
			tried[p.Digest] = true
			if err := c.fetchOne(ctx, p); err != nil {
				return err
			}
		}
		if err := c.follow(ctx); err != nil {
			return err
		}
	}
}

// wanted lists what to download next: manifests, or blobs if no manifest is left.
func (c *checker) wanted(tried map[digest.Digest]bool) []*Problem {
	var manifests, blobs []*Problem
	for _, p := range c.problems {
		n := c.needs[p.Digest]
		if p.Fixed || n == nil || !n.required || tried[p.Digest] || p.Kind != ProblemCorrupt && p.Kind != ProblemMissing {
			continue
		}
		if n.manifest {
			manifests = append(manifests, p)
		} else {
			blobs = append(blobs, p)
		}
	}
	if len(manifests) > 0 {
		return manifests
	}
	return blobs
}

// maxSources limits how many sources are tried for a blob.
const maxSources = 8

// fetchOne returns an error only if ctx is done; it records other failures in p.
func (c *checker) fetchOne(ctx context.Context, p *Problem) error {
	n := c.needs[p.Digest]
	for _, name := range n.hosts() {
		err := c.o.Fetch(ctx, name, n.desc)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = c.s.CheckBlob(p.Digest, n.desc.Size)
		}
		if err != nil {
			p.Actions = append(p.Actions, fmt.Sprintf("not fetched as part of %s: %v", name, err))
			continue
		}
		p.Actions, p.Fixed = append(p.Actions, fmt.Sprintf("fetched as part of %s", name)), true
		c.files[p.Digest] = n.desc.Size
		delete(c.bad, p.Digest)
		return nil
	}
	return nil
}
