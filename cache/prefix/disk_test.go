package prefix

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

func openDisk(t *testing.T, o DiskOptions) *Disk {
	t.Helper()
	if o.Model == "" {
		o.Model = "a model"
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
				w.disk.idle.Wait()
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
			w.disk.idle.Wait()
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

// Random requests of several lives see what they would see without a tree.
func TestDiskRandomRequests(t *testing.T) {
	for _, env := range environments {
		t.Run(env.name, func(t *testing.T) {
			dir, loaded := t.TempDir(), int64(0)
			for seed := range uint64(4) {
				s := life(t, env, 3000, DiskOptions{Dir: dir, Budget: 1 << 20}, func(w *world) { w.walk(rand.New(rand.NewPCG(seed, 11)), 120) })
				loaded += s.Loaded
			}
			if loaded == 0 {
				t.Error("nothing came back from the disk")
			}
		})
	}
}

// sealed is a file with a right checksum.
func sealed(header, layers []byte) []byte {
	payload := append(binary.LittleEndian.AppendUint32(nil, uint32(len(header))), header...)
	payload = append(payload, layers...)
	sum := sha256.Sum256(payload)
	return append(sum[:], payload...)
}

// Foreign bytes are refused, whatever they claim.
func FuzzDecodeNode(f *testing.F) {
	f.Add([]byte(`{"start":0,"end":4,"layers":[9]}`), []byte("123456789"))
	f.Add([]byte(`{"start":0,"end":4,"layers":[-1]}`), []byte{})
	f.Add([]byte(`{"start":0,"end":4,"layers":[90]}`), []byte("\x30\x00\x00\x00{\"form\":1,\"to\":4,\"arrays\":[{\"dtype\":99,\"shape\":[1]}]}"))
	f.Fuzz(func(t *testing.T, header, layers []byte) {
		mlxtest.Do(t, func(e *mlx.Thread) {
			_, all, err := decodeNode(e, sealed(header, layers), []cache.Kind{cache.Full})
			if err == nil {
				all.Close()
			}
		})
	})
}
