package cmd_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestKilledCreatePush kills creates that keep nothing at random moments. Run again, they end in the digest of a local
// create, and what the registry lost meanwhile is made again.
func TestKilledCreatePush(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("..", "testdata", "models", "llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	peer := newTestRegistry(t.Cleanup)
	local := t.TempDir()
	_, want, _ := strings.Cut(strings.TrimSpace(ingot(t, local, "create", "m", dir, "-q", "int4")), "@")
	name := peer.addr + "/team/m:int4"
	args := []string{"create", name, dir, "-q", "int4", "--push", "--no-keep"}
	peer.count(0, nil)
	ingot(t, t.TempDir(), args...)
	ticks := peer.counted().ticks
	const kills = 3
	for round := range 2 {
		peer.empty()
		home := t.TempDir()
		for range kills {
			killed(t, peer, 1+rand.IntN(ticks), home, args...)
		}
		if round == 1 {
			peer.empty() // it had blobs of the killed runs
		}
		if got := strings.TrimSpace(ingot(t, home, args...)); got != name+"@"+want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
		fresh := t.TempDir()
		ingot(t, fresh, "pull", name)
		ingot(t, fresh, "fsck")
	}
}
