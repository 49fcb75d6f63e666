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

	"github.com/ingotml/ingot/manifest"
)

// aside are files of a store that no model needs: those that say who works in it, and what is unfinished.
var aside = regexp.MustCompile(`^store/(holders|lock$|index\.lock$|ingest/)`)

// checkCrashes makes the folders that a crash could leave, before each call and after the last, and looks at each
// store: it opens, nothing in it is wrong, and its models are one of want, the last one at the end. It gives how many
// there were. With first it ends at the first fault.
func (r recording) checkCrashes(t *testing.T, first bool, want ...string) (wrong []string, states int) {
	t.Helper()
	seen := map[[sha256.Size]byte]bool{}
	real := folder{top: t.TempDir(), has: map[string]version{}}
	d := r.before.copy()
	look := func(line int, want []string) error {
		for i, ahead := range []func(string) bool{
			func(string) bool { return false },              // no names but those that were synced
			func(string) bool { return true },               // all names; of the files what was synced
			func(dir string) bool { return dir == "store" }, // index.json is ahead of the blobs
			func(dir string) bool { return dir != "store" }, // and the other way
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
			if _, whole := files["store/oci-layout"]; !whole { // Open has made a store of it
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
			return nil // changes nothing that is durable, or nothing that the next look does not see
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

// checkAgain runs the command once more after some of the crashes, which leave names of files that are empty. It has to
// end well, whatever it goes on with.
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

// storeAfterCrash gives the names of a store's models, and what is wrong with it.
func storeAfterCrash(t *testing.T, home string) (names string, err error) {
	s, err := manifest.Open(home)
	if err != nil {
		return "", err
	}
	report, err := s.Fsck(t.Context(), manifest.FsckOptions{})
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
