package cmd_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/fsck"
)

// aside matches files of a store that no model needs: locks, holders' notes and unfinished work.
var aside = regexp.MustCompile(`^store/(holders|lock$|index\.lock$|ingest/)`)

// checkCrashes creates every folder that a crash could leave, before each call and after the last, and checks each
// store: it must open, have no problems, and contain the models of one of want, in the end the last of want. It returns
// the problems and the number of states. With first it stops at the first problem.
func (r recording) checkCrashes(t *testing.T, first bool, want ...string) (wrong []string, states int) {
	t.Helper()
	seen := map[[sha256.Size]byte]bool{}
	real := folder{top: t.TempDir(), has: map[string]version{}}
	d := r.before.copy()
	look := func(line int, want []string) error {
		for i, ahead := range []func(string) bool{
			func(string) bool { return false },              // only synced names
			func(string) bool { return true },               // all names, synced contents
			func(dir string) bool { return dir == "store" }, // index.json is ahead of the blobs
			func(dir string) bool { return dir != "store" }, // the blobs are ahead of index.json
		} {
			if first && len(wrong) > 0 {
				return nil
			}
			files := d.crash(ahead, aside.MatchString)
			key := sum(files)
			if seen[key] && line > 0 {
				continue
			}
			seen[key] = true
			states++
			if err := real.become(files); err != nil {
				return err
			}
			got, err := storeAfterCrash(t, filepath.Join(real.top, "store"))
			if err != nil || !slices.Contains(want, got) {
				wrong = append(wrong, fmt.Sprintf("a crash at line %d (%d): models %q, %v", line, i, got, err))
			}
			if _, whole := files["store/oci-layout"]; !whole { // Open has created a store
				if err := real.clear(); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := r.replay(d, func(c traced) error {
		switch c.name {
		case "fsync", "fdatasync", "renameat", "renameat2", "linkat", "unlinkat", "mkdirat":
		default:
			return nil // no durable change, or none that the next check would miss
		}
		return look(c.begin, want)
	})
	if err == nil {
		err = look(0, want[len(want)-1:])
	}
	if err != nil {
		t.Fatal(err)
	}
	return wrong, states
}

// checkAgain runs the command again after some of the crashes, which can leave empty files. It must succeed from any of
// these states.
func (r recording) checkAgain(t *testing.T, want string) {
	t.Helper()
	d := r.before.copy()
	begun, runs := 0, 0
	err := r.replay(d, func(c traced) error {
		if c.name != "renameat" && c.name != "renameat2" {
			return nil
		}
		if begun++; begun%32 != 8 {
			return nil
		}
		runs++
		real := folder{top: t.TempDir(), has: map[string]version{}}
		always, never := func(string) bool { return true }, func(string) bool { return false }
		if err := real.become(d.crash(always, never)); err != nil {
			return err
		}
		home := filepath.Join(real.top, "store")
		if out, err := command(home, r.args...).CombinedOutput(); err != nil {
			t.Errorf("%v after a crash at line %d: %v\n%s", r.args, c.begin, err, out)
		}
		if got, err := storeAfterCrash(t, home); err != nil || got != want {
			t.Errorf("%v after a crash at line %d: models %q, %v", r.args, c.begin, got, err)
		}
		return nil
	})
	if err != nil || runs == 0 {
		t.Errorf("%d runs after crashes, %v", runs, err)
	}
}

// storeAfterCrash returns the names of a store's models, and the store's problems as an error.
func storeAfterCrash(t *testing.T, home string) (names string, err error) {
	s, err := store.Open(home)
	if err != nil {
		return "", err
	}
	report, err := fsck.Run(t.Context(), s, fsck.Options{})
	if err != nil {
		return "", err
	}
	for _, p := range report.Problems {
		err = errors.Join(err, fmt.Errorf("%s %s: %s", p.Kind, p.Path, p.Detail))
	}
	list, errList := s.List(t.Context())
	for _, m := range list {
		names += m.Name.Path + " "
	}
	return strings.TrimSpace(names), errors.Join(err, errList)
}
