package prefix

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stored is an indexed file.
type stored struct {
	fileName
	size int64
	used time.Time
}

// fileName identifies the node of a file: OWNER-START-END-HASH-HASH-HASH.state, with the hashes of the keys up to its
// start, its probe and its end.
type fileName struct {
	owner                   string // see [Disk.tag]
	start, end              int
	atStart, atProbe, atEnd string
}

// probe is the position up to which a prompt must agree with a node that it leaves inside its edge: a shorter match is
// not worth reading a file.
func (n fileName) probe() int { return min(n.start+probeKeys, n.end) }

const (
	suffix    = ".state"
	probeKeys = 16
	sumDigits = 32
)

func (n fileName) String() string {
	return fmt.Sprintf("%s-%d-%d-%s-%s-%s%s", n.owner, n.start, n.end, n.atStart, n.atProbe, n.atEnd, suffix)
}

func parseFileName(s string) (n fileName, ok bool) {
	base, ours := strings.CutSuffix(s, suffix)
	f := strings.Split(base, "-")
	if !ours || len(f) != 6 {
		return n, false
	}
	var err1, err2 error
	n.start, err1 = strconv.Atoi(f[1])
	n.end, err2 = strconv.Atoi(f[2])
	n.owner, n.atStart, n.atProbe, n.atEnd = f[0], f[3], f[4], f[5]
	return n, err1 == nil && err2 == nil && 0 <= n.start && n.start < n.end && n.String() == s
}

func nameOf(n *node, owner string, s *sums) fileName {
	name := fileName{owner: owner, start: n.start(), end: n.end}
	name.atStart, name.atProbe, name.atEnd = s.at(name.start), s.at(name.probe()), s.at(name.end)
	return name
}

// sums computes hashes of a seed and a prompt's keys up to any position.
type sums struct {
	keys   []Key
	known  map[int]string
	states []hash.Cloner // hash states before the keys at multiples of sumStride
}

const sumStride = 64

func newSums(seed []byte, keys []Key) *sums {
	h := sha256.New()
	h.Write(seed)
	return &sums{keys: keys, known: map[int]string{}, states: []hash.Cloner{h.(hash.Cloner)}}
}

// at returns the hash of the keys before a position.
func (s *sums) at(position int) string {
	if sum, ok := s.known[position]; ok {
		return sum
	}
	for n := len(s.states); n <= position/sumStride; n++ {
		s.states = append(s.states, s.after(s.states[n-1], (n-1)*sumStride, n*sumStride))
	}
	begin := position / sumStride
	h := s.after(s.states[begin], begin*sumStride, position)
	sum := hex.EncodeToString(h.Sum(nil))[:sumDigits]
	s.known[position] = sum
	return sum
}

// after returns a copy of a hash state extended by the keys [begin, end).
func (s *sums) after(state hash.Cloner, begin, end int) hash.Cloner {
	h, err := state.Clone()
	if err != nil {
		panic(fmt.Sprintf("prefix: SHA-256 cannot be cloned: %v", err)) // all hashes of the standard library can be cloned
	}
	var b [8]byte
	for _, k := range s.keys[begin:end] {
		binary.LittleEndian.PutUint64(b[:], uint64(k))
		h.Write(b[:])
	}
	return h
}

// index finds files by their keys.
type index struct {
	files  map[string]*stored // by name
	begins map[string]int     // number of files by the hash at their start
	probes map[probe][]*stored
	ends   map[string][]*stored // by the hash at their end
	bytes  int64
}

// probe is the beginning of a node's edge.
type probe struct {
	atStart string
	keys    int
	atProbe string
}

func newIndex() *index {
	return &index{files: map[string]*stored{}, begins: map[string]int{}, probes: map[probe][]*stored{},
		ends: map[string][]*stored{}}
}

func (f *stored) begin() probe { return probe{f.atStart, f.probe() - f.start, f.atProbe} }

// add indexes a file and replaces an entry of the same name.
func (x *index) add(f *stored) {
	x.remove(f.String())
	x.files[f.String()] = f
	x.bytes += f.size
	x.begins[f.atStart]++
	x.probes[f.begin()] = append(x.probes[f.begin()], f)
	x.ends[f.atEnd] = append(x.ends[f.atEnd], f)
}

func (x *index) remove(name string) {
	f := x.files[name]
	if f == nil {
		return
	}
	delete(x.files, name)
	x.bytes -= f.size
	if x.begins[f.atStart]--; x.begins[f.atStart] == 0 {
		delete(x.begins, f.atStart)
	}
	without(x.probes, f.begin(), f)
	without(x.ends, f.atEnd, f)
}

// without removes a file from one list of a map.
func without[K comparable](lists map[K][]*stored, key K, f *stored) {
	list := slices.DeleteFunc(lists[key], func(other *stored) bool { return other == f })
	if len(list) == 0 {
		delete(lists, key)
	} else {
		lists[key] = list
	}
}

// find follows a prompt from its start and from the positions in from; see [Disk.find].
func (x *index) find(s *sums, from []int) (whole, within []fileName) {
	todo := append([]int{0}, from...)
	been := map[int]bool{}
	var parted []*stored
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if been[at] || x.begins[s.at(at)] == 0 {
			continue
		}
		been[at] = true
		for n := 1; n <= probeKeys && at+n <= len(s.keys); n++ {
			for _, f := range x.probes[probe{s.at(at), n, s.at(at + n)}] {
				if f.end <= len(s.keys) && s.at(f.end) == f.atEnd {
					whole = append(whole, f.fileName)
					todo = append(todo, f.end)
				} else {
					parted = append(parted, f)
				}
			}
		}
	}
	slices.SortFunc(whole,
		func(a, b fileName) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.start, b.start)) })
	slices.SortFunc(parted, func(a, b *stored) int { return b.used.Compare(a.used) })
	for _, f := range parted {
		within = append(within, f.fileName)
	}
	return whole, within
}

// path lists a node's file and the files on any path from the start of its keys to it.
func (x *index) path(n fileName) []*stored {
	var all []*stored
	if f := x.files[n.String()]; f != nil {
		all = append(all, f)
	}
	seen := map[string]bool{}
	for at := []string{n.atStart}; len(at) > 0; {
		sum := at[len(at)-1]
		at = at[:len(at)-1]
		if seen[sum] {
			continue
		}
		seen[sum] = true
		for _, f := range x.ends[sum] {
			all = append(all, f)
			at = append(at, f.atStart)
		}
	}
	return all
}
