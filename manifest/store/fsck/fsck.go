package fsck

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/ingest"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Options are options of [Run].
type Options struct {
	Repair bool
	// Fetch downloads a blob or manifest again into the store, from the registry in name. Repair calls it for corrupt and
	// missing blobs of models that were pulled from a registry or pushed to one. Calls are sequential, under the shared
	// store lock. If Fetch is nil, nothing is downloaded.
	Fetch    func(ctx context.Context, name manifest.Name, desc ocispec.Descriptor) error
	Progress func(done, total int64) // bytes hashed; calls are serialized; may be nil
	Parallel int                     // blobs hashed concurrently; 0: GOMAXPROCS
}

// Report is the result of a [Run].
type Report struct {
	Models          int // names
	Blobs           int // hashed
	Bytes           int64
	Hashing         time.Duration // wall time of hashing
	Unnamed         int           // images that the index does not lead to, which a collection removes
	Unfinished      int           // resumable and active runs, which are no problem
	UnfinishedBytes int64
	Problems        []Problem // sorted by kind, in the order below, then by path
}

// OK reports whether every problem was fixed, or there was none.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Problems, func(p Problem) bool { return !p.Fixed })
}

// Problem is a defect of a store.
type Problem struct {
	Kind    ProblemKind
	Path    string        // relative to the store, slash-separated
	Digest  digest.Digest // of the blob; empty if the problem concerns no blob
	Detail  string
	Models  []string // affected names, sorted; a referrer is named by its subject
	Actions []string // what Repair did, in order
	Fixed   bool     // the repair was complete

	leftover ingest.Leftover // set for ProblemLeftover
}

// ProblemKind is the kind of a problem.
type ProblemKind string

// The kinds of problems.
const (
	ProblemIndex    ProblemKind = "index"    // index.json or one of its entries is wrong
	ProblemManifest ProblemKind = "manifest" // a manifest is intact, but invalid for its media type
	ProblemCorrupt  ProblemKind = "corrupt"  // a blob does not match its digest
	ProblemMissing  ProblemKind = "missing"  // a blob that a model refers to does not exist
	ProblemMode     ProblemKind = "mode"     // a blob is writable
	ProblemStray    ProblemKind = "stray"    // a file among the blobs, or in ingest/, that is not the store's
	ProblemLeftover ProblemKind = "leftover" // a temporary file whose writer has exited
)

var problemOrder = []ProblemKind{
	ProblemIndex, ProblemManifest, ProblemCorrupt, ProblemMissing, ProblemMode, ProblemStray, ProblemLeftover,
}

// Run checks the whole store: it hashes every blob and follows every entry of the index. Blobs that a partial pull
// left out are not a problem, and neither are files that other processes are writing.
//
// With Repair it moves corrupt blobs and stray files to quarantine/, restores modes, corrects index entries, downloads
// good copies with Fetch, and deletes leftover temporary files. It deletes nothing else. It ignores unknown files
// younger than an hour, because a writer may be about to rename them. Repair holds the store's lock exclusively until
// it begins to download, and shared from then on; without Repair, Run shares the lock. Run returns a
// [*lock.BusyError] if it cannot acquire the exclusive lock within five seconds.
func Run(ctx context.Context, s *store.Store, o Options) (Report, error) {
	c := &checker{s: s, o: o, problems: map[string]*Problem{}}
	err := c.run(ctx)
	if err != nil {
		err = fmt.Errorf("check model store: %w", err)
	}
	return c.finish(), err
}

// checker is the state of one Run.
type checker struct {
	s *store.Store
	o Options

	index    ocispec.Index
	files    map[digest.Digest]int64           // sizes of the files in blobs/sha256
	needs    map[digest.Digest]*need           // blobs reachable from the index
	names    map[digest.Digest][]manifest.Name // by digest of the manifest
	problems map[string]*Problem               // by kind and path
	bad      map[digest.Digest]*Problem        // blobs that do not match their digest
	types    map[digest.Digest]string          // media types that manifests have for themselves
	unnamed  []digest.Digest                   // manifests that the index does not lead to
	report   Report
}

// need records why a blob must exist.
type need struct {
	desc     ocispec.Descriptor
	users    map[*visit]bool
	required bool // false if all users are partial
	manifest bool
}

func (c *checker) run(ctx context.Context) error {
	release, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := c.readIndex(); err != nil {
		return err
	}
	if err := c.scan(ctx); err != nil {
		return err
	}
	if err := c.hash(ctx); err != nil {
		return err
	}
	if err := c.followAll(ctx); err != nil {
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
		return c.s.Locks().Exclusive(ctx)
	}
	return c.s.Lock(ctx)
}

// addProblem records a problem, once per kind and path.
func (c *checker) addProblem(kind ProblemKind, p Problem) *Problem {
	p.Kind = kind
	if p.Path == "" {
		p.Path = store.BlobsDir + "/" + p.Digest.Encoded()
	}
	key := string(kind) + " " + p.Path
	if old := c.problems[key]; old != nil {
		return old
	}
	c.problems[key] = &p
	return &p
}

// finish returns the report, with the affected models set and the problems sorted.
func (c *checker) finish() Report {
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
	for v := range n.users {
		list = append(list, v.labels...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// hosts returns the names to fetch the blob from, at most maxSources.
func (n *need) hosts() (list []manifest.Name) {
	visits := slices.SortedFunc(maps.Keys(n.users), func(a, b *visit) int { return a.number - b.number })
	for _, v := range visits {
		for _, name := range v.hosts {
			if len(list) == maxSources {
				return list
			}
			list = append(list, name)
		}
	}
	return list
}
