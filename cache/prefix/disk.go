package prefix

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
//
// A file holds one node, under hashes of the model and of the keys up to its start, a little further, and up to its end. It begins with a
// checksum: what is damaged, or was written by another version, is a miss and goes. Files are replaced whole; the oldest go first. Writing happens beside the engine's
// thread, and is given up where the disk does not keep up.
type Disk struct {
	opts DiskOptions

	mu    sync.Mutex
	files map[string]*stored // by name
	bytes int64

	queue chan write
	done  chan struct{}
	idle  sync.WaitGroup // writes that are queued or at work
	stats DiskStats
}

// DiskStats count since the disk tier was opened, but for Bytes and Nodes.
type DiskStats struct {
	Bytes   int64 `json:"bytes"`
	Nodes   int   `json:"nodes"`
	Loaded  int64 `json:"loaded"`  // nodes that came back
	Written int64 `json:"written"` // nodes
	Dropped int64 `json:"dropped"` // not written, since the disk did not keep up or failed
}

// stored is a file.
type stored struct {
	fileName
	size int64
	used time.Time
}

// fileName says which node a file holds: START-END-SUM-SUM-SUM.state, with the sums of the keys up to its start, to its probe and
// to its end.
type fileName struct {
	start, end              int
	atStart, atProbe, atEnd string
}

// probe is where a prompt that parts from a node inside its edge must still agree with it, so that few files have to be looked into.
func (n fileName) probe() int { return min(n.start+probeKeys, n.end) }

const (
	probeKeys = 16
	sumDigits = 32
)

func (n fileName) String() string {
	return fmt.Sprintf("%d-%d-%s-%s-%s%s", n.start, n.end, n.atStart, n.atProbe, n.atEnd, suffix)
}

func parseFileName(s string) (n fileName, ok bool) {
	base, ours := strings.CutSuffix(s, suffix)
	f := strings.Split(base, "-")
	if !ours || len(f) != 5 {
		return n, false
	}
	var err1, err2 error
	n.start, err1 = strconv.Atoi(f[0])
	n.end, err2 = strconv.Atoi(f[1])
	n.atStart, n.atProbe, n.atEnd = f[2], f[3], f[4]
	return n, err1 == nil && err2 == nil && 0 <= n.start && n.start < n.end && n.String() == s
}

type write struct {
	name    fileName
	payload []byte
}

// version changes with the format, and with how layers lay out their state.
const version = "ingot-prefix-1"

// Writes wait for one another up to so many.
const (
	suffix     = ".state"
	writesWait = 16
)

// OpenDisk reads what a folder holds.
func OpenDisk(o DiskOptions) (*Disk, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open prefix cache: %w", err)
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open prefix cache: %w", err)
	}
	d := &Disk{opts: o, files: map[string]*stored{}, queue: make(chan write, writesWait), done: make(chan struct{})}
	for _, e := range entries {
		name, ok := parseFileName(e.Name())
		if !ok {
			continue
		}
		if info, err := e.Info(); err == nil {
			d.files[e.Name()] = &stored{name, info.Size(), info.ModTime()}
			d.bytes += info.Size()
		}
	}
	go d.work()
	return d, nil
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
	s.Bytes, s.Nodes = d.bytes, len(d.files)
	return s
}

// find lists the files that may serve a prompt: whole are nodes on its path, in the order of their ends, and within are nodes from
// which it parts inside their edge, or ends there.
func (d *Disk) find(keys []Key) (whole, within []fileName) {
	d.mu.Lock()
	var all []fileName
	at := map[int]string{}
	for _, f := range d.files {
		if f.probe() <= len(keys) {
			all = append(all, f.fileName)
			at[f.start], at[f.probe()] = "", ""
			if f.end <= len(keys) {
				at[f.end] = ""
			}
		}
	}
	d.mu.Unlock()
	d.sums(keys, at)
	for _, n := range all {
		switch {
		case at[n.start] != n.atStart || at[n.probe()] != n.atProbe:
		case n.end <= len(keys) && at[n.end] == n.atEnd:
			whole = append(whole, n)
		default:
			within = append(within, n)
		}
	}
	slices.SortFunc(whole, func(a, b fileName) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.start, b.start)) })
	return whole, within
}

// sums fills in the sums of the keys up to positions.
func (d *Disk) sums(keys []Key, at map[int]string) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d %s\n", version, len(d.opts.Model), d.opts.Model)
	done := 0
	var b [8]byte
	for _, p := range slices.Sorted(maps.Keys(at)) {
		for _, k := range keys[done:p] {
			binary.LittleEndian.PutUint64(b[:], uint64(k))
			h.Write(b[:])
		}
		done = p
		at[p] = hex.EncodeToString(h.Sum(nil))[:sumDigits]
	}
}

func (d *Disk) nameOf(n *node, keys []Key) fileName {
	name := fileName{start: n.start(), end: n.end}
	at := map[int]string{name.start: "", name.probe(): "", name.end: ""}
	d.sums(keys, at)
	name.atStart, name.atProbe, name.atEnd = at[name.start], at[name.probe()], at[name.end]
	return name
}

// nodeHeader comes before the snapshots of a node's layers.
type nodeHeader struct {
	Start  int     `json:"start"`
	End    int     `json:"end"`
	Edge   []Key   `json:"edge"`
	Layers []int64 `json:"layers"` // bytes of each layer's snapshot, 0 for none
}

// save queues a node to be written; keys are all up to its end. It runs on the engine's thread.
func (d *Disk) save(n *node, keys []Key) {
	name := d.nameOf(n, keys)
	d.mu.Lock()
	_, there := d.files[name.String()]
	d.mu.Unlock()
	if there || len(d.queue) == cap(d.queue) {
		if !there {
			d.count(func(s *DiskStats) { s.Dropped++ })
		}
		return
	}
	header := nodeHeader{Start: n.start(), End: n.end, Edge: n.edge}
	var data []byte
	for _, s := range n.snapshots {
		if s == nil {
			header.Layers = append(header.Layers, 0)
			continue
		}
		b := s.Encode()
		header.Layers = append(header.Layers, int64(len(b)))
		data = append(data, b...)
	}
	head, err := json.Marshal(header)
	if err != nil {
		panic(&mlx.Error{Message: "prefix: " + err.Error()}) // numbers only
	}
	payload := append(append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(head)+len(data)), uint32(len(head))), head...), data...)
	d.idle.Add(1)
	select {
	case d.queue <- write{name, payload}:
	default:
		d.idle.Done()
		d.count(func(s *DiskStats) { s.Dropped++ })
	}
}

func (d *Disk) count(fn func(*DiskStats)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn(&d.stats)
}

// work writes what is queued.
func (d *Disk) work() {
	defer close(d.done)
	for w := range d.queue {
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

func (d *Disk) write(w write) error {
	f, err := os.CreateTemp(d.opts.Dir, "part-*")
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
	if err := os.Rename(f.Name(), filepath.Join(d.opts.Dir, w.name.String())); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	size := int64(len(sum) + len(w.payload))
	d.files[w.name.String()] = &stored{w.name, size, time.Now()}
	d.bytes += size
	d.trim()
	return nil
}

// trim keeps to the budget.
func (d *Disk) trim() {
	if d.opts.Budget <= 0 || d.bytes <= d.opts.Budget {
		return
	}
	names := slices.SortedFunc(maps.Keys(d.files), func(a, b string) int {
		return cmp.Or(d.files[a].used.Compare(d.files[b].used), cmp.Compare(d.files[b].end, d.files[a].end))
	})
	for _, name := range names {
		if d.bytes <= d.opts.Budget {
			return
		}
		d.forget(name)
	}
}

func (d *Disk) forget(name string) {
	d.bytes -= d.files[name].size
	delete(d.files, name)
	os.Remove(filepath.Join(d.opts.Dir, name)) // another process may have been faster
}

// load reads a node's snapshots. What is damaged goes, and is a miss.
func (d *Disk) load(t *mlx.Thread, name fileName, kinds []cache.Kind) (header nodeHeader, all cache.Snapshots, ok bool) {
	path := filepath.Join(d.opts.Dir, name.String())
	b, err := os.ReadFile(path)
	if err == nil {
		header, all, err = decodeNode(t, b, kinds)
	}
	if err == nil && (header.Start != name.start || header.End != name.end) {
		all.Close()
		err = fmt.Errorf("%w: of another node", cache.ErrEncoding)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name.String()]
	switch {
	case err == nil && f != nil:
		f.used = time.Now()
		_ = os.Chtimes(path, f.used, f.used) // only for the order in which they go
		d.stats.Loaded++
	case f != nil && (errors.Is(err, cache.ErrEncoding) || errors.Is(err, fs.ErrNotExist)):
		d.forget(name.String())
	}
	return header, all, err == nil
}

// edge reads only what keys a node has.
func (d *Disk) edge(name fileName) []Key {
	f, err := os.Open(filepath.Join(d.opts.Dir, name.String()))
	if err != nil {
		return nil
	}
	defer f.Close()
	start := make([]byte, sha256.Size+4)
	if _, err := io.ReadFull(f, start); err != nil {
		return nil
	}
	n := binary.LittleEndian.Uint32(start[sha256.Size:])
	if n > maxNodeHeader {
		return nil
	}
	b := make([]byte, n)
	var h nodeHeader
	if _, err := io.ReadFull(f, b); err != nil || json.Unmarshal(b, &h) != nil {
		return nil
	}
	return h.Edge
}

// Of a million keys.
const maxNodeHeader = 32 << 20

func decodeNode(t *mlx.Thread, b []byte, kinds []cache.Kind) (h nodeHeader, all cache.Snapshots, err error) {
	if len(b) < sha256.Size+4 {
		return h, nil, fmt.Errorf("%w: %d bytes", cache.ErrEncoding, len(b))
	}
	payload := b[sha256.Size:]
	if sum := sha256.Sum256(payload); !bytes.Equal(sum[:], b[:sha256.Size]) {
		return h, nil, fmt.Errorf("%w: its bytes have changed", cache.ErrEncoding)
	}
	n := int64(binary.LittleEndian.Uint32(payload))
	if payload = payload[4:]; n > int64(len(payload)) {
		return h, nil, fmt.Errorf("%w: a header of %d bytes", cache.ErrEncoding, n)
	}
	if err := json.Unmarshal(payload[:n], &h); err != nil || len(h.Layers) != len(kinds) || h.Start < 0 || h.End-h.Start != len(h.Edge) || h.End <= h.Start {
		return h, nil, fmt.Errorf("%w: of another model", cache.ErrEncoding)
	}
	rest := payload[n:]
	all = make(cache.Snapshots, len(kinds))
	for i, size := range h.Layers {
		if size == 0 {
			continue
		}
		if size < 0 || size > int64(len(rest)) {
			all.Close()
			return h, nil, fmt.Errorf("%w: layer %d has %d bytes of %d", cache.ErrEncoding, i, size, len(rest))
		}
		if all[i], err = cache.Decode(t, kinds[i], bytes.NewReader(rest[:size])); err != nil {
			all.Close()
			return h, nil, err
		}
		if all[i].To() != h.End {
			all.Close()
			return h, nil, fmt.Errorf("%w: layer %d ends at %d", cache.ErrEncoding, i, all[i].To())
		}
		rest = rest[size:]
	}
	return h, all, nil
}
