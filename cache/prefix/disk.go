package prefix

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// DiskOptions are where and for what nodes are kept on disk.
type DiskOptions struct {
	Dir    string // made if need be; only files of this package's are touched in it
	Model  string // all that decides what is in a state beside the keys: digests of the model, types, rule versions
	Budget int64  // most bytes; 0 is no limit
}

// Disk is the second tier: what leaves a tree's memory goes there, and what a prompt needs comes back, also in another process.
// Several processes may have one folder.
//
// A file holds one node, under hashes of the model and of the keys up to its start, a little further, and up to its end. Names are
// kept in memory, so a lookup costs what the depth of a prompt's path does. A file begins with a checksum: what is damaged, or was written by
// another version, is a miss and goes. Files are replaced whole; the oldest go first, a node not before what follows it. Writing
// happens beside the engine's thread, and is given up where the disk does not keep up, but for what a tree leaves at its end.
type Disk struct {
	opts DiskOptions

	mu     sync.Mutex
	index  *index
	looked time.Time // when the folder was read last
	seen   time.Time // the folder's own time then
	stats  DiskStats

	queue chan write
	look  chan struct{} // one element: the folder may have changed
	done  chan struct{}
	idle  sync.WaitGroup // writes that are queued or at work
}

// DiskStats count since the disk tier was opened, but for Bytes and Nodes.
type DiskStats struct {
	Bytes   int64 `json:"bytes"`
	Budget  int64 `json:"budget"` // 0: without limit
	Nodes   int   `json:"nodes"`
	Loaded  int64 `json:"loaded"`  // nodes that came back
	Written int64 `json:"written"` // nodes
	Dropped int64 `json:"dropped"` // not written, since the disk did not keep up or failed
}

type write struct {
	name    fileName
	payload []byte
}

const (
	writesWait = 16 // for one another
	partPrefix = "part-"
	partLife   = time.Hour   // after which a part of a file is nobody's
	lookEvery  = time.Second // at most, for what other processes do to the folder
)

// OpenDisk reads what a folder holds.
func OpenDisk(o DiskOptions) (*Disk, error) {
	d := &Disk{opts: o, index: newIndex(), queue: make(chan write, writesWait), look: make(chan struct{}, 1), done: make(chan struct{})}
	err := os.MkdirAll(o.Dir, 0o700)
	if err == nil {
		err = d.read()
	}
	if err != nil {
		return nil, fmt.Errorf("open prefix cache: %w", err)
	}
	d.trim()
	go d.work()
	return d, nil
}

// read brings the index up to what is in the folder.
func (d *Disk) read() error {
	info, err := os.Stat(d.opts.Dir)
	if err != nil {
		return err
	}
	d.mu.Lock()
	known := info.ModTime().Equal(d.seen) && d.looked.Sub(d.seen) > lookEvery // else it may have changed within a tick of its clock
	d.looked = time.Now()
	d.mu.Unlock()
	if known {
		return nil
	}
	entries, err := os.ReadDir(d.opts.Dir)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
		if strings.HasPrefix(e.Name(), partPrefix) {
			if i, err := e.Info(); err == nil && time.Since(i.ModTime()) > partLife {
				os.Remove(filepath.Join(d.opts.Dir, e.Name())) // of a process that was killed
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = info.ModTime()
	for name := range d.index.files {
		if !there[name] {
			d.index.remove(name)
		}
	}
	for _, e := range entries {
		name, ok := parseFileName(e.Name())
		if !ok || d.index.files[e.Name()] != nil {
			continue
		}
		if i, err := e.Info(); err == nil {
			d.index.add(&stored{name, i.Size(), i.ModTime()})
		}
	}
	return nil
}

// Close writes what waits to be written.
func (d *Disk) Close() {
	d.idle.Wait()
	close(d.queue)
	<-d.done
}

// Stats tells how the tier does.
func (d *Disk) Stats() DiskStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Bytes, s.Budget, s.Nodes = d.index.bytes, d.opts.Budget, len(d.index.files)
	return s
}

// find lists the files that may serve a prompt: whole are nodes on its path, in the order of their ends, and within are nodes from
// which it parts inside their edge, or ends there, the last used first. The path begins at the start of the prompt, or at other positions from
// which the caller has what comes before.
func (d *Disk) find(keys []Key, from ...int) (whole, within []fileName) {
	sums := newSums(d.opts.Model, keys)
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.looked) > lookEvery {
		select {
		case d.look <- struct{}{}: // for a later prompt: this one does not wait for the folder
		default:
		}
	}
	return d.index.find(sums, from)
}

// save queues a node to be written; keys are all up to its end. Where the disk does not keep up it waits, or gives the node up.
// It runs on the engine's thread.
func (d *Disk) save(n *node, keys []Key, wait bool) {
	name := nameOf(n, newSums(d.opts.Model, keys))
	d.mu.Lock()
	there := d.index.files[name.String()] != nil
	d.mu.Unlock()
	if there {
		return
	}
	if !wait && len(d.queue) == cap(d.queue) { // one thread fills it: there is room after this
		d.count(func(s *DiskStats) { s.Dropped++ })
		return
	}
	w := write{name, encodeNode(n)}
	d.idle.Add(1)
	d.queue <- w
}

func (d *Disk) count(fn func(*DiskStats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn(&d.stats)
}

// work writes what is queued, and reads the folder when others may have changed it.
func (d *Disk) work() {
	defer close(d.done)
	for {
		select {
		case <-d.look:
			_ = d.read() // a folder that cannot be read now has nothing new
		case w, ok := <-d.queue:
			if !ok {
				return
			}
			err := d.write(w)
			d.count(func(s *DiskStats) {
				if err != nil {
					s.Dropped++
				} else {
					s.Written++
				}
			})
			d.idle.Done()
		}
	}
}

func (d *Disk) write(w write) error {
	f, err := os.CreateTemp(d.opts.Dir, partPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	sum := sha256.Sum256(w.payload)
	_, err = f.Write(sum[:])
	if err == nil {
		_, err = f.Write(w.payload)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), d.path(w.name)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.index.add(&stored{w.name, int64(len(sum) + len(w.payload)), time.Now()})
	d.freshen(w.name)
	d.trim()
	return nil
}

func (d *Disk) path(n fileName) string { return filepath.Join(d.opts.Dir, n.String()) }

// freshen makes a file and those before it on its path the last used ones: without them it is of no use.
func (d *Disk) freshen(n fileName) {
	now := time.Now()
	for _, f := range d.index.path(n) {
		f.used = now
		_ = os.Chtimes(d.path(f.fileName), now, now) // only for the order in which they go
	}
}

// trim keeps to the budget. Of files that were used together those with the farthest end go first.
func (d *Disk) trim() {
	if d.opts.Budget <= 0 || d.index.bytes <= d.opts.Budget {
		return
	}
	var all []*stored
	for _, f := range d.index.files {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *stored) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(b.end, a.end)) })
	for _, f := range all {
		if d.index.bytes <= d.opts.Budget {
			return
		}
		d.forget(f.fileName)
	}
}

func (d *Disk) forget(n fileName) {
	d.index.remove(n.String())
	os.Remove(d.path(n)) // another process may have been faster
}

// load reads a node's snapshots. What is damaged goes, and is a miss.
func (d *Disk) load(t *mlx.Thread, name fileName, kinds []cache.Kind) (header nodeHeader, all cache.Snapshots, ok bool) {
	b, err := os.ReadFile(d.path(name))
	if err == nil {
		header, all, err = decodeNode(t, b, kinds)
	}
	if err == nil && (header.Start != name.start || header.End != name.end) {
		all.Close()
		err = fmt.Errorf("%w: of another node", cache.ErrEncoding)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case err == nil:
		d.freshen(name)
		d.stats.Loaded++
	case errors.Is(err, cache.ErrEncoding) || errors.Is(err, fs.ErrNotExist):
		d.forget(name)
	}
	return header, all, err == nil
}
