package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// FsckOptions are those of [Store.Fsck].
type FsckOptions struct {
	Repair bool
	// Fetch gets a blob or a manifest again from where the name says, into the store. Repair asks for what is bad or missing
	// and belongs to a model that came from a registry or was pushed to one; one at a time, while it shares the store's
	// lock. Nil fetches nothing.
	Fetch    func(ctx context.Context, name Name, desc ocispec.Descriptor) error
	Progress func(done, total int64) // bytes hashed; calls come one at a time; may be nil
	Parallel int                     // blobs hashed at a time; 0: one for each processor
}

// FsckReport says what a [Store.Fsck] found.
type FsckReport struct {
	Models          int // names
	Blobs           int // hashed
	Bytes           int64
	Hashing         time.Duration // what hashing them took
	Unfinished      int           // interrupted runs that can go on, and those that run now: no problem
	UnfinishedBytes int64
	Problems        []Problem // in the order of their kinds below, then by name
}

// OK reports whether nothing is wrong, or no longer.
func (r FsckReport) OK() bool {
	return !slices.ContainsFunc(r.Problems, func(p Problem) bool { return !p.Fixed })
}

// Problem is something that is wrong with a store.
type Problem struct {
	Kind    ProblemKind
	Path    string        // in the store's folder, with slashes
	Digest  digest.Digest // of the blob; empty when it is about none
	Detail  string
	Models  []string // the names that it breaks, sorted; a referrer's are its digest and its subject
	Actions []string // what Repair did, in order
	Fixed   bool     // nothing of it is left

	leftover leftover // of a ProblemLeftover
}

// ProblemKind says what is wrong.
type ProblemKind string

// The kinds of problems.
const (
	ProblemIndex    ProblemKind = "index"    // index.json, or an entry of it
	ProblemManifest ProblemKind = "manifest" // whole, and yet not what its type says
	ProblemCorrupt  ProblemKind = "corrupt"  // a blob whose bytes do not match its digest
	ProblemMissing  ProblemKind = "missing"  // a blob that a name leads to
	ProblemMode     ProblemKind = "mode"     // a blob that can be written, so changed in place
	ProblemStray    ProblemKind = "stray"    // a file that is no blob, where only blobs are
	ProblemLeftover ProblemKind = "leftover" // a temporary file whose writer is gone
)

var problemOrder = []ProblemKind{ProblemIndex, ProblemManifest, ProblemCorrupt, ProblemMissing, ProblemMode, ProblemStray, ProblemLeftover}

// Fsck reads the whole store: every blob is hashed, every entry of the index followed. Blobs that a partial pull left out
// are no problem, nor is what other processes are writing.
//
// With Repair it puts right what it can, and deletes nothing but temporary files: bad blobs and strays go to quarantine/,
// modes are restored, entries of the index corrected, good copies fetched. It then holds the store's lock alone until
// it fetches, and is a [*BusyError] when others hold it for longer than five seconds; otherwise it shares the lock.
// Files that may still get their name, being younger than an hour, are left alone.
func (s *Store) Fsck(ctx context.Context, o FsckOptions) (FsckReport, error) {
	c := &checker{s: s, o: o, problems: map[string]*Problem{}}
	err := c.run(ctx)
	if err != nil {
		err = fmt.Errorf("check model store: %w", err)
	}
	return c.finish(), err
}

// checker is one run of Fsck.
type checker struct {
	s *Store
	o FsckOptions

	index    ocispec.Index
	files    map[digest.Digest]int64    // sizes of what is in blobs/sha256
	needs    map[digest.Digest]*need    // what the entries of the index lead to
	names    map[digest.Digest][]Name   // of each manifest
	problems map[string]*Problem        // by kind and path
	bad      map[digest.Digest]*Problem // blobs that do not match their digest
	report   FsckReport
}

// need is why a blob has to be there.
type need struct {
	desc     ocispec.Descriptor
	users    map[string]bool // labels of entries
	hosts    []Name          // names by which it may be fetched
	required bool            // false when all users may lack it
	manifest bool
}

func (c *checker) run(ctx context.Context) error {
	release, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if c.index, err = c.s.readIndex(); err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		c.problem(ProblemIndex, Problem{Path: ocispec.ImageIndexFile, Detail: err.Error()})
	}
	if err := c.scan(ctx); err != nil {
		return err
	}
	if err := c.hash(ctx); err != nil {
		return err
	}
	if err := c.follow(ctx); err != nil {
		return err
	}
	if err := c.checkIngest(); err != nil {
		return err
	}
	if !c.o.Repair {
		return nil
	}
	if err := c.repair(ctx); err != nil {
		return err
	}
	release()
	return c.fetch(ctx)
}

func (c *checker) lock(ctx context.Context) (release func(), err error) {
	if c.o.Repair {
		return c.s.lockAll(ctx)
	}
	return c.s.Lock(ctx)
}

// problem notes a problem, once.
func (c *checker) problem(kind ProblemKind, p Problem) *Problem {
	p.Kind = kind
	if p.Path == "" {
		p.Path = blobsDir + "/" + p.Digest.Encoded()
	}
	key := string(kind) + " " + p.Path
	if old := c.problems[key]; old != nil {
		return old
	}
	c.problems[key] = &p
	return &p
}

// finish sorts what was found, and says whom it breaks.
func (c *checker) finish() FsckReport {
	r := c.report
	for _, p := range c.problems {
		if n := c.needs[p.Digest]; n != nil && p.Kind != ProblemMode {
			p.Models = n.labels()
		}
		r.Problems = append(r.Problems, *p)
	}
	slices.SortFunc(r.Problems, func(a, b Problem) int {
		if a.Kind != b.Kind {
			return slices.Index(problemOrder, a.Kind) - slices.Index(problemOrder, b.Kind)
		}
		return strings.Compare(a.Path, b.Path)
	})
	return r
}

func (n *need) labels() []string {
	var list []string
	for label := range n.users {
		list = append(list, label)
	}
	slices.Sort(list)
	return list
}
