package prefix

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/internal/limits/place"
	"github.com/ingotml/ingot/mlx"
)

// DiskOptions configure a [Disk].
type DiskOptions struct {
	Dir    string // created if needed; files of others in it are not touched
	Model  string // everything beside the keys that determines a state: model digest, types, rule versions
	Secret []byte // required: only processes with the same one find and use each other's files
	Budget int64  // maximum bytes; 0: no limit

	Log func(format string, args ...any) // for the operator; may be nil
}

// Disk is the second tier of a prefix cache: entries evicted from a tree's memory are written there, and entries that a
// prompt needs are read back, also by another process. Several processes may share a folder.
//
// A file holds one node. Its name has keyed hashes of the model, the owner and the keys up to the node's start, its
// probe, and its end. Names are indexed in memory, so a lookup costs time proportional to the depth of a prompt's path.
// A file begins with an HMAC over its name and its content; one that has another is a miss and is deleted. Files are
// replaced atomically. Of owners that have more than an equal share, the least recently used files are evicted first, a
// node never before its descendants. Writing happens off the engine's thread. If the disk cannot keep up, entries are
// dropped, except those that a tree leaves when it closes.
type Disk struct {
	opts DiskOptions

	mu     sync.Mutex
	index  *index
	looked time.Time // when the folder was last read
	seen   time.Time // the folder's modification time then
	stats  DiskStats
	told   sync.Once // that a file is not as it was written

	queue chan write
	look  chan struct{} // buffered, one element: the folder may have changed
	done  chan struct{}
}

// DiskStats are counts since the disk tier was opened, and its current Bytes and Nodes.
type DiskStats struct {
	Bytes   int64 `json:"bytes"`
	Budget  int64 `json:"budget"` // 0: no limit
	Nodes   int   `json:"nodes"`
	Loaded  int64 `json:"loaded"`  // nodes read back
	Written int64 `json:"written"` // nodes written
	Dropped int64 `json:"dropped"` // nodes not written because the disk was too slow or failed
}

type write struct {
	name    fileName
	payload []byte
	written chan struct{} // not nil: nothing to write, see Written
}

const (
	writesWait = 16 // queue length
	partPrefix = "part-"
	partLife   = time.Hour   // age after which a temporary file is abandoned
	lookEvery  = time.Second // minimum interval between scans for other processes' changes
)

// OpenDisk opens the folder and indexes its files. A folder that others could have written is a [place.ErrUntrusted]:
// they would choose the state that a prompt continues from.
func OpenDisk(o DiskOptions) (*Disk, error) {
	d := &Disk{opts: o, index: newIndex(), queue: make(chan write, writesWait), look: make(chan struct{}, 1),
		done: make(chan struct{})}
	err := os.MkdirAll(o.Dir, 0o700)
	if err == nil {
		err = place.Trusted(o.Dir)
	}
	if err == nil {
		err = d.read()
	}
	if err == nil && len(o.Secret) == 0 {
		err = errors.New("there is no secret")
	}
	if err != nil {
		return nil, fmt.Errorf("open prefix cache: %w", err)
	}
	d.trim()
	go d.work()
	return d, nil
}

// read updates the index from the folder.
func (d *Disk) read() error {
	info, err := os.Stat(d.opts.Dir)
	if err != nil {
		return err
	}
	d.mu.Lock()
	// otherwise a change within one tick of the clock could be missed
	known := info.ModTime().Equal(d.seen) && d.looked.Sub(d.seen) > lookEvery
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
				os.Remove(filepath.Join(d.opts.Dir, e.Name())) // left by a killed process
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
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() {
			d.index.add(&stored{name, i.Size(), i.ModTime()})
		}
	}
	return nil
}

// Close writes queued entries and stops.
func (d *Disk) Close() {
	close(d.queue)
	<-d.done
}

// Stats returns the tier's counters.
func (d *Disk) Stats() DiskStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Bytes, s.Budget, s.Nodes = d.index.bytes, d.opts.Budget, len(d.index.files)
	return s
}

// find lists the files of an owner that may serve a prompt. whole are nodes on its path, ordered by their ends. within
// are nodes whose edge the prompt leaves or ends in, most recently used first. The path starts at the beginning of the
// prompt, or at other positions whose prefix the caller has.
func (d *Disk) find(owner string, keys []Key, from ...int) (whole, within []fileName) {
	sums := newSums(d.seed(owner), keys)
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.looked) > lookEvery {
		select {
		case d.look <- struct{}{}: // scan for a later prompt; this one does not wait
		default:
		}
	}
	return d.index.find(sums, from)
}

// save queues a node for writing; keys are all keys up to its end. If the disk cannot keep up, it waits or drops the
// node. It runs on the engine's thread.
func (d *Disk) save(n *node, keys []Key, wait bool) {
	name := nameOf(n, d.tag(n.of.owner), newSums(d.seed(n.of.owner), keys))
	d.mu.Lock()
	there := d.index.files[name.String()] != nil
	d.mu.Unlock()
	if there {
		return
	}
	if !wait && len(d.queue) == cap(d.queue) { // one thread fills the queue, so there is room after this check
		d.count(func(s *DiskStats) { s.Dropped++ })
		return
	}
	d.queue <- write{name: name, payload: encodeNode(n)}
}

// Written returns a channel that is closed when all that is queued has been written. It runs on the engine's thread.
func (d *Disk) Written() <-chan struct{} {
	done := make(chan struct{})
	d.queue <- write{written: done}
	return done
}

func (d *Disk) count(fn func(*DiskStats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn(&d.stats)
}

// work writes queued nodes and scans the folder when others may have changed it.
func (d *Disk) work() {
	defer close(d.done)
	for {
		select {
		case <-d.look:
			_ = d.read() // an unreadable folder has nothing new
		case w, ok := <-d.queue:
			if !ok {
				return
			}
			if w.written != nil {
				close(w.written)
				continue
			}
			err := d.write(w)
			d.count(func(s *DiskStats) {
				if err != nil {
					s.Dropped++
				} else {
					s.Written++
				}
			})
		}
	}
}

func (d *Disk) write(w write) error {
	f, err := os.CreateTemp(d.opts.Dir, partPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // no effect after the rename
	mac := d.mac(w.name)
	mac.Write(w.payload)
	sum := mac.Sum(nil)
	_, err = f.Write(sum)
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

// freshen marks a file and its ancestors as just used: without them it is useless.
func (d *Disk) freshen(n fileName) {
	now := time.Now()
	for _, f := range d.index.path(n) {
		f.used = now
		_ = os.Chtimes(d.path(f.fileName), now, now) // the time only orders eviction
	}
}

func (d *Disk) forget(n fileName) {
	d.index.remove(n.String())
	os.Remove(d.path(n)) // another process may have removed it already
}

// load reads a node's snapshots. A damaged file is deleted and is a miss.
func (d *Disk) load(t *mlx.Thread, name fileName, kinds []cache.Kind) (header nodeHeader, all cache.Snapshots,
	ok bool) {
	f, size, err := d.open(name)
	if err == nil {
		header, all, err = decodeNode(t, d.mac(name), f, size, kinds)
		f.Close()
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
	case errors.Is(err, cache.ErrEncoding):
		d.forget(name)
		d.tell(name, err)
	case errors.Is(err, fs.ErrNotExist):
		d.forget(name)
	default: // it cannot be opened, or it is not a file of ours
		d.index.remove(name.String())
	}
	return header, all, err == nil
}
