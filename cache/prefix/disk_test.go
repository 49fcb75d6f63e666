package prefix

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

func openDisk(t *testing.T, o DiskOptions) *Disk {
	t.Helper()
	o.Model = cmp.Or(o.Model, "a model")
	if o.Secret == nil {
		o.Secret = []byte("a secret")
	}
	d, err := OpenDisk(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// life runs a tree over a folder, as a process would from its start to its end.
func life(t *testing.T, env environment, budget int64, o DiskOptions, fn func(w *world)) DiskStats {
	t.Helper()
	d := openDisk(t, o)
	in(t, env, budget, func(w *world) {
		w.SetDisk(w.e, d)
		fn(w)
	})
	d.Close()
	return d.Stats()
}

// What a process has evaluated serves the next one.
func TestDiskSurvives(t *testing.T) {
	for _, env := range environments {
		t.Run(env.name, func(t *testing.T) {
			o := DiskOptions{Dir: filepath.Join(t.TempDir(), "new", "folder")}
			s := life(t, env, 0, o, func(w *world) {
				w.run(keys(1, 60), 100, 101)
				w.run(join(keys(1, 61), keys(200, 230)), 7)
			})
			if s.Written == 0 || s.Nodes != int(s.Written) || s.Bytes == 0 {
				t.Errorf("written: %+v", s)
			}
			s = life(t, env, 0, o, func(w *world) {
				w.wantRun(2, 0, join(keys(1, 60), []Key{100, 101, 102, 103}))
				w.wantRun(1, 0, join(keys(1, 61), keys(200, 230), []Key{7, 8}))
			})
			if s.Loaded < 2 {
				t.Errorf("loaded: %+v", s)
			}
			if env.name == "full" { // else a part of these nodes is of no use
				life(t, env, 0, o, func(w *world) {
					w.wantRun(1, 0, keys(1, 31))
					w.wantRun(8, 0, join(keys(1, 61), keys(200, 225), keys(900, 908)))
				})
			}
			o.Model = "another model"
			life(t, env, 0, o, func(w *world) { w.wantRun(9, 0, keys(1, 10)) })
		})
	}
}

// What memory has no room for comes back from the disk.
func TestDiskTakesWhatIsEvicted(t *testing.T) {
	for _, env := range environments {
		t.Run(env.name, func(t *testing.T) {
			s := life(t, env, 1, DiskOptions{Dir: t.TempDir()}, func(w *world) {
				w.run(keys(1, 40), 50)
				<-w.disk.Written()
				w.wantRun(1, 0, join(keys(1, 40), []Key{50, 51}))
			})
			if s.Loaded == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Damaged files are misses, and go.
func TestDiskDamage(t *testing.T) {
	env := environments[2]
	for name, damage := range map[string]func(b []byte) []byte{
		"a bit":      func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"cut":        func(b []byte) []byte { return b[:len(b)-9] },
		"empty":      func([]byte) []byte { return nil },
		"checksum":   func(b []byte) []byte { b[3]++; return b },
		"cut header": func(b []byte) []byte { return b[:34] },
	} {
		t.Run(name, func(t *testing.T) {
			o := DiskOptions{Dir: t.TempDir()}
			life(t, env, 0, o, func(w *world) { w.run(keys(1, 40), 50) })
			files, err := filepath.Glob(filepath.Join(o.Dir, "*"+suffix))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(f, damage(b), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(o.Dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := life(t, env, 0, o, func(w *world) {
				w.wantRun(41, 0, join(keys(1, 40), []Key{50, 51}))
				if left, _ := filepath.Glob(filepath.Join(o.Dir, "*")); len(left) != 1 {
					t.Errorf("left: %v", left)
				}
			})
			if s.Loaded != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestDiskBudget(t *testing.T) {
	env, dir := environments[0], t.TempDir()
	one := life(t, env, 0, DiskOptions{Dir: t.TempDir()}, func(w *world) { w.run(keys(1, 40), 50) })
	s := life(t, env, 0, DiskOptions{Dir: dir, Budget: 3*one.Bytes + one.Bytes/2}, func(w *world) {
		for i := range 6 {
			w.run(keys(1000*i+1, 1000*i+40), 50)
			w.SetBudget(1) // to the disk, one after the other
			<-w.disk.Written()
			w.SetBudget(0)
		}
	})
	if s.Nodes != 3 || s.Bytes > 3*one.Bytes+one.Bytes/2 || s.Written != 6 {
		t.Errorf("%+v, one has %d bytes", s, one.Bytes)
	}
	life(t, env, 0, DiskOptions{Dir: dir}, func(w *world) {
		w.wantRun(39, 0, keys(1, 40))                          // the oldest are gone
		w.wantRun(1, 0, join(keys(5001, 5040), []Key{50, 51})) // the newest is there
	})
}

// What a tree leaves at its end is written whole, however much it is.
func TestDiskTakesAllAtTheEnd(t *testing.T) {
	o := DiskOptions{Dir: t.TempDir()}
	nodes := 0
	s := life(t, environments[0], 0, o, func(w *world) {
		for i := range 3 * writesWait {
			w.run(join(keys(1, 20), keys(100*i+100, 100*i+105)), 50)
		}
		nodes = w.Stats().Nodes
	})
	if s.Dropped != 0 || int(s.Written) != nodes || nodes < 3*writesWait {
		t.Errorf("of %d nodes: %+v", nodes, s)
	}
}

// Two processes have one folder: what one writes the other finds, what one removes is a miss for the other.
func TestDiskOfTwo(t *testing.T) {
	for _, env := range environments {
		t.Run(env.name, func(t *testing.T) {
			o := DiskOptions{Dir: t.TempDir()}
			other := openDisk(t, o)
			life(t, env, 0, o, func(w *world) { w.run(keys(1, 40), 50) })
			if err := other.read(); err != nil {
				t.Error(err)
			}
			if s := other.Stats(); s.Nodes == 0 || s.Bytes == 0 {
				t.Errorf("the other sees %+v", s)
			}
			in(t, env, 0, func(w *world) {
				w.SetDisk(w.e, other)
				w.wantRun(1, 0, join(keys(1, 40), []Key{50, 51}))
			})
			<-other.Written()
			files, err := filepath.Glob(filepath.Join(o.Dir, "*"+suffix))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			third := openDisk(t, o)
			for _, f := range files {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
			in(t, env, 0, func(w *world) {
				w.SetDisk(w.e, other)
				w.wantRun(41, 0, join(keys(1, 40), []Key{50, 51}))
			})
			other.Close()
			if err := third.read(); err != nil {
				t.Error(err)
			}
			files, err = filepath.Glob(filepath.Join(o.Dir, "*"+suffix))
			if s := third.Stats(); err != nil || s.Nodes != len(files) {
				t.Errorf("there are %d files, and a third one sees %+v", len(files), s)
			}
			third.Close()
		})
	}
}

// Several processes at once write, read and trim one folder.
func TestDiskOfManyAtOnce(t *testing.T) {
	env, o := environments[3], DiskOptions{Dir: t.TempDir(), Budget: 30_000}
	var disks []*Disk
	for range 3 {
		disks = append(disks, openDisk(t, o))
	}
	for round := range uint64(6) {
		for i, d := range disks {
			in(t, env, 2000, func(w *world) {
				w.SetDisk(w.e, d)
				w.walk(rand.New(rand.NewPCG(round, uint64(i)%2)), 40) // two of them say the same
			})
			if round%2 == 1 {
				if err := d.read(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	loaded := int64(0)
	for _, d := range disks {
		d.Close()
		loaded += d.Stats().Loaded
	}
	if loaded == 0 {
		t.Error("nothing came back")
	}
	if left, _ := filepath.Glob(filepath.Join(o.Dir, partPrefix+"*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	last := openDisk(t, o)
	defer last.Close()
	if s := last.Stats(); s.Bytes > o.Budget {
		t.Errorf("%+v", s)
	}
}

// What others need goes after what needs it, and what was used last goes last. Parts that a killed process left go in
// an hour.
func TestDiskOrder(t *testing.T) {
	env, o := environments[0], DiskOptions{Dir: t.TempDir()}
	begin := keys(1, 41)
	part := filepath.Join(o.Dir, partPrefix+"1")
	if err := os.WriteFile(part, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * partLife)
	if err := os.Chtimes(part, old, old); err != nil {
		t.Fatal(err)
	}
	life(t, env, 0, o, func(w *world) {
		w.run(join(begin, keys(100, 130)), 1)
		w.run(join(begin, keys(200, 230)), 1)
		w.run(keys(500, 540), 1)
	})
	if _, err := os.Stat(part); err == nil {
		t.Error("half a file of nobody is still there")
	}
	life(t, env, 0, o, func(w *world) { w.wantRun(1, 0, join(begin, keys(200, 230), []Key{1, 2})) })
	// With a byte less each time: the first conversation, the other one, and what the second one's end has replaced.
	for range 3 {
		d := openDisk(t, o)
		before := d.Stats()
		d.Close()
		o.Budget = before.Bytes - 1
		d = openDisk(t, o)
		if got := d.Stats().Nodes; got != before.Nodes-1 {
			t.Errorf("%d nodes of %d are left", got, before.Nodes)
		}
		d.Close()
	}
	o.Budget = 0
	life(t, env, 0, o, func(w *world) { w.wantRun(1, 0, join(begin, keys(200, 230), []Key{1, 2})) })
}

// A lookup costs what the depth of a path does, however many files there are.
func TestIndexLookup(t *testing.T) {
	x := newIndex()
	add := func(keys []Key, start, end int) fileName {
		s := newSums([]byte("m"), keys)
		n := fileName{start: start, end: end}
		n.atStart, n.atProbe, n.atEnd = s.at(start), s.at(n.probe()), s.at(end)
		x.add(&stored{n, 10, time.Now()})
		return n
	}
	prompt := keys(1, 2001)
	var path []fileName
	for end := 100; end <= 1800; end += 100 {
		path = append(path, add(prompt, end-100, end))
	}
	half := add(join(prompt[:1800], keys(1801, 1820), keys(90000, 90100)), 1800, 1900)
	add(join(prompt[:1800], keys(1801, 1805), keys(70000, 70100)), 1800, 1900) // agrees too little
	for i := range 5000 {
		at := 100 * (i % 18)
		add(join(prompt[:at], keys(10_000+100*i, 10_050+100*i)), at, at+50)
	}
	for range 2 {
		s := newSums([]byte("m"), prompt)
		whole, within := x.find(s, nil)
		if !slices.Equal(whole, path) || !slices.Equal(within, []fileName{half}) {
			t.Errorf("found %v and %v", whole, within)
		}
		if len(s.known) > 20*(len(path)+1) {
			t.Errorf("%d sums for a path of %d nodes", len(s.known), len(path))
		}
		add(prompt, 1700, 1800) // again
	}
	// From where the caller has what comes before.
	x.remove(path[3].String())
	whole, _ := x.find(newSums([]byte("m"), prompt), nil)
	beyond, _ := x.find(newSums([]byte("m"), prompt), []int{400})
	if !slices.Equal(whole, path[:3]) || !slices.Equal(beyond, slices.Concat(path[:3], path[4:])) {
		t.Errorf("after a gap %d and %d nodes", len(whole), len(beyond))
	}
	if whole, within := x.find(newSums([]byte("another"), prompt), nil); len(whole)+len(within) != 0 {
		t.Error("of another model")
	}
	for name := range x.files {
		x.remove(name)
	}
	if x.bytes != 0 || len(x.begins)+len(x.probes)+len(x.ends) != 0 {
		t.Errorf("an empty index has %d bytes, %d, %d, %d", x.bytes, len(x.begins), len(x.probes), len(x.ends))
	}
}

// Sums at any position, in any order, are those of all keys before it.
func TestSums(t *testing.T) {
	list := keys(1, 400)
	s := newSums([]byte("m"), list)
	for _, p := range []int{399, 0, 64, 63, 65, 128, 1, 399, 200} {
		if got, want := s.at(p), newSums([]byte("m"), list[:p]).at(p); got != want {
			t.Errorf("at %d: %s, want %s", p, got, want)
		}
	}
	if s.at(5) == newSums([]byte("n"), list).at(5) || s.at(5) == s.at(6) {
		t.Error("sums are alike")
	}
}

// Random requests of several lives see what they would see without a tree.
func TestDiskRandomRequests(t *testing.T) {
	for _, env := range environments {
		t.Run(env.name, func(t *testing.T) {
			dir, loaded := t.TempDir(), int64(0)
			for seed := range runtest.Pick[uint64](4, 40) {
				s := life(t, env, 3000, DiskOptions{Dir: dir, Budget: 1 << 20},
					func(w *world) { w.walk(rand.New(rand.NewPCG(seed, 11)), 120) })
				loaded += s.Loaded
			}
			if loaded == 0 {
				t.Error("nothing came back from the disk")
			}
		})
	}
}

var fuzzKey = []byte("a key")

// sealed is a file with a right MAC, under a key.
func sealed(header, layers []byte) []byte {
	payload := append(binary.LittleEndian.AppendUint32(nil, uint32(len(header))), header...)
	payload = append(payload, layers...)
	mac := hmac.New(sha256.New, fuzzKey)
	mac.Write(payload)
	return append(mac.Sum(nil), payload...)
}

// Foreign bytes are refused, whatever they claim.
func FuzzDecodeNode(f *testing.F) {
	f.Add([]byte(`{"start":0,"end":4,"layers":[9]}`), []byte("123456789"))
	f.Add([]byte(`{"start":0,"end":4,"layers":[-1]}`), []byte{})
	f.Add([]byte(`{"start":0,"end":4,"layers":[90]}`),
		[]byte("\x30\x00\x00\x00{\"form\":1,\"to\":4,\"arrays\":[{\"dtype\":99,\"shape\":[1]}]}"))
	f.Fuzz(func(t *testing.T, header, layers []byte) {
		mlxtest.Do(t, func(e *mlx.Thread) {
			b := sealed(header, layers)
			mac := hmac.New(sha256.New, fuzzKey)
			_, all, err := decodeNode(e, mac, bytes.NewReader(b), int64(len(b)), []cache.Kind{cache.Full})
			if err == nil {
				all.Close()
			}
		})
	})
}
