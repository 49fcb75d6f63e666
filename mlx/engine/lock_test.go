package engine

import (
	"slices"
	"strings"
	"testing"
)

// The embedded lock files satisfy what the package assumes about them.
func TestLocks(t *testing.T) {
	t.Parallel()
	for flavour, want := range map[Flavour]struct {
		mlx       string
		platforms []string
		packages  int
		wheels    int // of MLX
	}{
		CPU:    {"mlx-cpu", []string{"linux/amd64", "linux/arm64"}, 1, 2},
		CUDA12: {"mlx-cuda-12", []string{"linux/amd64", "linux/arm64"}, 10, 2},
		CUDA13: {"mlx-cuda-13", []string{"linux/amd64", "linux/arm64"}, 11, 2},
		Metal:  {"mlx-metal", []string{"darwin/arm64"}, 1, 3},
	} {
		l, err := lockOf(flavour)
		if err != nil {
			t.Fatal(err)
		}
		var platforms []string
		for p, tags := range l.platforms {
			platforms = append(platforms, p)
			if tagVersion(tags[0]) == 0 || !slices.IsSortedFunc(tags[:len(tags)-1],
				func(a, b string) int { return tagVersion(b) - tagVersion(a) }) {
				t.Errorf("%s: tags of %s are not newest first: %v", flavour, p, tags)
			}
		}
		slices.Sort(platforms)
		if !slices.Equal(platforms, want.platforms) {
			t.Errorf("%s is for %v, want %v", flavour, platforms, want.platforms)
		}
		if first := l.packages[0]; first.name != want.mlx || first.version != Version || len(first.hashes) != want.wheels {
			t.Errorf("%s starts with %+v", flavour, first)
		}
		if len(l.packages) != want.packages {
			t.Errorf("%s has %d packages, want %d", flavour, len(l.packages), want.packages)
		}
		for _, p := range l.packages {
			if len(p.hashes) != want.wheels {
				t.Errorf("%s: %s has %d wheels, want %d", flavour, p, len(p.hashes), want.wheels)
			}
		}
		again, err := parseLock(l.requirements())
		if err != nil || len(again.packages) != len(l.packages) || again.packages[0].String() != l.packages[0].String() {
			t.Errorf("%s: requirements do not parse: %v", flavour, err)
		}
		text, err := lockFiles.ReadFile("lock/" + string(flavour) + ".txt")
		if err != nil || strings.Contains(string(text), "//") || strings.Contains(string(text), "index") {
			t.Errorf("%s names an index, which is the user's choice (%v)", flavour, err)
		}
	}
}

func TestParseLockErrors(t *testing.T) {
	t.Parallel()
	hash := " --hash=sha256:" + strings.Repeat("0", 64)
	for _, text := range []string{
		"",
		"# platform linux/amd64 x\n",
		"mlx-cpu" + hash,
		"mlx-cpu>=1" + hash,
		"mlx-cpu==1",
		"mlx-cpu==1 --hash=sha256:00",
		"mlx-cpu==1 --hash=md5:" + strings.Repeat("0", 64),
		"--index-url x" + hash,
		"mlx-cpu==1" + hash + " ; python_version > '3'",
	} {
		if l, err := parseLock(text); err == nil {
			t.Errorf("%q was accepted as %+v", text, l)
		}
	}
}
