package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ingotml/ingot/internal/limits"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Source is a tensor and the open file that contains it.
type Source struct {
	Tensor
	File *File
}

// Reader returns a reader of the tensor's data; see File.Reader.
func (s Source) Reader() *io.SectionReader { return s.File.Reader(s.Tensor) }

// Checkpoint is an open folder of weights. Its methods are safe for concurrent use.
type Checkpoint struct {
	files     []*File
	tensors   []Source
	unindexed []Source
	unlisted  []string // files
	stale     error
	notes     []string
}

// OpenCheckpoint opens the weights in a local folder; see [OpenFolder].
func OpenCheckpoint(dir string) (*Checkpoint, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s: not a folder: name the folder that contains the model", dir)
	}
	return OpenFolder(Dir(dir))
}

// OpenFolder opens the weights in a folder. It reads all headers but no data.
//
// If model.safetensors.index.json exists, its weight_map lists the model's tensors and the file of each. An index that
// is not true of the files gives way to them, with a note; a listed tensor that no file has is an error. Without an
// index, the model consists of all files model*.safetensors: a single file, or a complete set of shards
// -00001-of-0000N. If there are none, it may be one file or one set of shards with another name, except
// consolidated*.safetensors (which use Mistral's own tensor names) and adapters.
func OpenFolder(folder Folder) (*Checkpoint, error) {
	c := new(Checkpoint)
	if err := c.open(folder); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Checkpoint) open(folder Folder) error {
	entries, err := folder.ReadDir(".")
	if err != nil {
		return err
	}
	// The listing, because a dangling link into a download cache is an error, not a missing index.
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == indexName }) {
		weights, err := readIndex(folder)
		if err != nil {
			return err
		}
		return c.openIndexed(folder, entries, weights)
	}
	names, err := discover(folder, entries)
	if err != nil {
		return fmt.Errorf("%s: %w", folder.Path("."), err)
	}
	return c.openAll(folder, names)
}

// maxOpening is the number of files whose headers are read at a time. A remote file's takes a few round trips.
const maxOpening = 16

// openFiles opens files and adds them, in order. The error is that of the first file that has one.
func (c *Checkpoint) openFiles(folder Folder, names []string) error {
	files, errs := make([]*File, len(names)), make([]error, len(names))
	memory := semaphore.NewWeighted(MaxHeaderSize)
	read := func(r io.ReaderAt, size int64) (*Header, error) { return readHeader(r, size, memory) }
	var tensors atomic.Int64
	var group errgroup.Group
	group.SetLimit(maxOpening)
	for i, name := range names {
		group.Go(func() error {
			if tensors.Load() > limits.Tensors {
				return nil // which is the error
			}
			if files[i], errs[i] = OpenAs(folder, name, read); files[i] != nil {
				tensors.Add(int64(len(files[i].header.Tensors)))
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, f := range files {
		if f != nil {
			c.files = append(c.files, f)
		}
	}
	if err := cmp.Or(errs...); err != nil || tensors.Load() <= limits.Tensors {
		return err
	}
	return fmt.Errorf("%s: %w: the files have %d tensors, the limit is %d", folder.Path("."), ErrHeaderTooLarge,
		tensors.Load(), limits.Tensors)
}

// openAll opens the files and adds all of their tensors.
func (c *Checkpoint) openAll(folder Folder, names []string) error {
	if err := c.openFiles(folder, names); err != nil {
		return err
	}
	c.tensors = sources(c.files)
	for i, s := range c.tensors {
		if i > 0 && c.tensors[i-1].Name == s.Name {
			return fmt.Errorf("%s: tensor %s: %w: it is also in %s, and there is no %s to decide between them",
				s.File.Path(), quote(s.Name), ErrDuplicate, filepath.Base(c.tensors[i-1].File.Path()), indexName)
		}
	}
	if len(c.tensors) == 0 {
		return fmt.Errorf("%s: %w: %s contains no tensors", folder.Path("."), ErrNoWeights, strings.Join(names, ", "))
	}
	return nil
}

func bySourceName(a, b Source) int { return cmp.Compare(a.Name, b.Name) }

// Tensors returns the model's tensors, sorted by name. The caller must not modify the slice.
func (c *Checkpoint) Tensors() []Source { return c.tensors }

// Unindexed returns the tensors that are in the opened files but not at that place in the index, sorted by name. They
// are not part of the model.
func (c *Checkpoint) Unindexed() []Source { return c.unindexed }

// Files returns the opened files, sorted by name.
func (c *Checkpoint) Files() []*File { return c.files }

// Lookup finds one of the model's tensors by name.
func (c *Checkpoint) Lookup(name string) (Source, bool) {
	i, ok := slices.BinarySearchFunc(c.tensors, name, func(s Source, name string) int { return cmp.Compare(s.Name, name) })
	if !ok {
		return Source{}, false
	}
	return c.tensors[i], true
}

// Close closes all files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// CheckpointOf returns a checkpoint of open files, which belong to it, with all of their tensors.
func CheckpointOf(files ...*File) *Checkpoint {
	return &Checkpoint{files: files, tensors: sources(files)}
}

// sources returns the tensors of files, sorted by name.
func sources(files []*File) []Source {
	n := 0
	for _, f := range files {
		n += len(f.Header().Tensors)
	}
	list := make([]Source, 0, n)
	for _, f := range files {
		for _, t := range f.Header().Tensors {
			list = append(list, Source{t, f})
		}
	}
	slices.SortStableFunc(list, bySourceName)
	return list
}
