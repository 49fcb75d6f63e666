package prefix

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// states returns the files of a folder, with their contents.
func states(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if all[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Files that others have written are not used, even with the checksum of what is in them, or with all of another file:
// that of another prompt, or of another owner. One note says so.
func TestDiskForged(t *testing.T) {
	env := environments[0]
	first, second := keys(1, 41), keys(101, 141)
	join := func(mac, of []byte) []byte { return slices.Concat(mac[:sha256.Size], of[sha256.Size:]) }
	for name, forge := range map[string]func(own, other []byte) []byte{
		"with a checksum": func(_, other []byte) []byte {
			sum := sha256.Sum256(other[sha256.Size:])
			return join(sum[:], other)
		},
		"with an empty MAC":        func(own, _ []byte) []byte { return join(make([]byte, sha256.Size), own) },
		"another file":             func(_, other []byte) []byte { return other },
		"with the MAC of another":  func(own, other []byte) []byte { return join(other, own) },
		"of another with this MAC": func(own, other []byte) []byte { return join(own, other) },
	} {
		for _, owner := range []string{"a", "b"} {
			t.Run(name+" "+owner, func(t *testing.T) {
				var notes []string
				o := DiskOptions{Dir: t.TempDir(), Log: func(format string, args ...any) {
					notes = append(notes, fmt.Sprintf(format, args...))
				}}
				life(t, env, 0, o, func(w *world) { w.as("a", first, 50) })
				all := states(t, o.Dir)
				life(t, env, 0, o, func(w *world) { w.as(owner, second, 50) })
				var other []byte
				for path, b := range states(t, o.Dir) {
					if all[path] == nil {
						other = b
					}
				}
				for path, own := range all {
					if err := os.WriteFile(path, forge(own, other), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				s := life(t, env, 0, o, func(w *world) { w.wantAs("a", 42, slices.Concat(first, []Key{50, 51})) })
				if s.Loaded != 0 || len(notes) != 1 {
					t.Errorf("%+v, notes: %q", s, notes)
				}
			})
		}
	}
}

// A node's state depends on the keys before it, which its file does not have: as the end of another prompt, with the
// same keys, it is not used.
func TestDiskMoved(t *testing.T) {
	env, o := environments[0], DiskOptions{Dir: t.TempDir()}
	d := openDisk(t, o)
	defer d.Close()
	tail := keys(500, 540)
	paths := map[bool]string{}
	for _, moved := range []bool{false, true} {
		begin := keys(1, 41)
		if moved {
			begin = keys(101, 141)
		}
		in(t, env, 0, func(w *world) {
			w.SetDisk(w.e, d)
			w.as("a", begin)
			n := w.part("a").root.children[0]
			n.user = true // else it grows
			w.as("a", join(begin, tail))
			paths[moved] = d.path(nameOf(w.part("a").root.children[0].children[0], d.tag("a"),
				newSums(d.seed("a"), join(begin, tail))))
		})
		<-d.Written()
	}
	b, err := os.ReadFile(paths[true])
	if err == nil {
		err = os.WriteFile(paths[false], b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	life(t, env, 0, o, func(w *world) { w.wantAs("a", 41, join(keys(1, 41), tail, []Key{7})) })
}

// With another secret nothing is found, and no name says what was there. Without one there is no tier.
func TestDiskSecret(t *testing.T) {
	env, o := environments[0], DiskOptions{Dir: t.TempDir()}
	life(t, env, 0, o, func(w *world) { w.run(keys(1, 40), 50) })
	before := states(t, o.Dir)
	o.Secret = []byte("another secret")
	s := life(t, env, 0, o, func(w *world) { w.wantRun(41, 0, join(keys(1, 40), []Key{50, 51})) })
	if s.Loaded != 0 {
		t.Errorf("%+v", s)
	}
	for path := range states(t, o.Dir) {
		if n, _ := parseFileName(filepath.Base(path)); before[path] == nil && n.start == 0 {
			for other := range before {
				if o, _ := parseFileName(filepath.Base(other)); o.atStart == n.atStart || o.owner == n.owner {
					t.Errorf("%s and %s have a hash in common", path, other)
				}
			}
		}
	}
	o.Secret = []byte{}
	if d, err := OpenDisk(o); err == nil {
		d.Close()
		t.Error("a folder is opened without a secret")
	}
}

// The files of an owner outlive any number of another one's.
func TestDiskFlood(t *testing.T) {
	env, dir := environments[0], t.TempDir()
	one := life(t, env, 0, DiskOptions{Dir: t.TempDir()}, func(w *world) { w.run(keys(1, 40), 50) })
	o := DiskOptions{Dir: dir, Budget: 4*one.Bytes + one.Bytes/2}
	flood := func(owner string, from, to int) {
		s := life(t, env, 0, o, func(w *world) {
			for i := from; i < to; i++ {
				w.as(owner, keys(1000*i+1, 1000*i+40), 50)
				w.SetBudget(1)
				<-w.disk.Written()
				w.SetBudget(0)
			}
		})
		if s.Nodes > 5 || s.Bytes > o.Budget {
			t.Errorf("%+v, one has %d bytes", s, one.Bytes)
		}
	}
	flood("a", 1, 3)
	flood("flood", 10, 20)
	life(t, env, 0, o, func(w *world) {
		for i := 1; i < 3; i++ {
			w.wantAs("a", 1, join(keys(1000*i+1, 1000*i+40), []Key{50, 51}))
		}
	})
}
