package cmd_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
)

// TestKilledLayoutCopies kills copies from a registry to a layout and to an archive, and copies from these to it, at
// random moments. The layout has whole blobs and the image or not; the archive is whole or not there. The same command
// then succeeds and leaves nothing beside them.
func TestKilledLayoutCopies(t *testing.T) {
	sizes := killSizes{large: 18 << 20, tensor: 2 << 20, tensors: 6, small: 12, chunk: 4 << 20, kills: 2}
	if runtest.Long() {
		sizes.kills = 20
	}
	peer := newTestRegistry(t.Cleanup)
	source := filepath.Join(t.TempDir(), "source")
	name := peer.addr + "/team/model:v1"
	makeModel(t, source, name, sizes)
	want := strings.TrimSpace(ingot(t, source, "push", name))
	for _, form := range []string{"oci:%s/layout", "oci-archive:%s/model.tar"} {
		peer.count(0, nil)
		whole := fmt.Sprintf(form, t.TempDir())
		home := filepath.Join(t.TempDir(), "home")
		ingot(t, home, "cp", name, whole+":v1")
		ofCopy := peer.counted().ticks
		peer.count(0, nil)
		ingot(t, home, "cp", whole+":v1", peer.addr+"/whole/model:v1")
		ofPush := peer.counted().ticks
		for i := range sizes.kills {
			dir := t.TempDir()
			place := fmt.Sprintf(form, dir) + ":v1"
			at := 1 + rand.N(ofCopy)
			what := fmt.Sprintf("copy %d to %s, killed at tick %d of %d", i, place, at, ofCopy)
			killed(t, peer, at, home, "cp", name, place)
			checkBlobs(t, what, filepath.Join(dir, "layout"))
			if got := ingot(t, home, "cp", name, place); got != place+"@"+want+"\n" {
				t.Fatalf("%s: it prints %q", what, got)
			}
			checkBlobs(t, what, filepath.Join(dir, "layout"))
			left, err := filepath.Glob(filepath.Join(dir, "*"))
			hidden, _ := filepath.Glob(filepath.Join(dir, ".*"))
			inside, _ := filepath.Glob(filepath.Join(dir, "layout", ".*"))
			if err != nil || len(left) != 1 || len(hidden)+len(inside) > 0 {
				t.Errorf("%s: there are %v, %v, %v", what, left, hidden, inside)
			}
			to := fmt.Sprintf("%s/back%d/model:v1", peer.addr, i)
			killed(t, peer, 1+rand.N(ofPush), home, "cp", place, to)
			if got := ingot(t, home, "cp", place, to); got != to+"@"+want+"\n" {
				t.Fatalf("%s: back it prints %q", what, got)
			}
			ingot(t, home, "check", to, "--digests")
			os.RemoveAll(dir)
		}
	}
}
