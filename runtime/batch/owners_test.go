package batch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// ownersModels are models of all kinds of layers.
var ownersModels = append(slices.Clone(cacheModels), "nemotron_h-published", "glm_moe_dsa-published")

// counted counts the rows of an engine's steps.
func counted(l *Engine) (rows func() int) {
	n := 0
	l.batcher.onStep = func(plan []batchItem) error {
		for _, s := range plan {
			n += s.rows
		}
		return nil
	}
	return func() int { before := n; n = 0; return before }
}

// A prompt that another owner has sent costs as many rows as one that nobody has: behind it, parked or not, and while
// it runs. To its own owner it costs what the cache leaves.
func TestOwners(t *testing.T) {
	const tokens = 3
	for _, name := range ownersModels {
		t.Run(name, func(t *testing.T) {
			want, l := newOracle(t, name), cached(t, name, runtime.Options{PrefixCache: 8 << 20})
			rows := counted(l)
			send := func(owner string, prompt []int32) (cached int) {
				t.Helper()
				ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Owner: owner, Prompt: prompt,
					MaxTokens: tokens, IgnoreEOS: true, Draft: runtime.Draft{Mode: runtime.DraftOff}})
				if expect := want.want(prompt, tokens); err != nil || !slices.Equal(ids, expect) {
					t.Fatalf("%q: %v, %v, want %v", owner, ids, err, expect)
				}
				return last.Stats.CachedTokens
			}
			prompt := randomPrompt(rand.New(rand.NewPCG(5, 6)), l, 60)
			further := slices.Concat(prompt, want.want(prompt, tokens), []int32{9, 11})
			fresh := func(owner string, prompt []int32) {
				t.Helper()
				rows()
				cached := send(owner, prompt)
				if n := rows(); cached != 0 || n != len(prompt)+tokens-1 {
					t.Errorf("%q: %d cached, %d rows for %d tokens", owner, cached, n, len(prompt))
				}
			}
			fresh("a", prompt)
			fresh("b", further) // what a left is parked
			fresh("", further)  // and now it is not
			if cached := send("a", further); cached < len(prompt)-snapshotTail {
				t.Errorf("a's own prompt: %d of %d tokens cached", cached, len(prompt))
			}
			// together
			other := randomPrompt(rand.New(rand.NewPCG(6, 6)), l, 60)
			want.want(other, tokens)
			rows()
			together(t, l, 4)
			var wg sync.WaitGroup
			for _, owner := range []string{"a", "a", "b", "b"} {
				wg.Go(func() {
					_, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Owner: owner, Prompt: other,
						MaxTokens: tokens, IgnoreEOS: true, Draft: runtime.Draft{Mode: runtime.DraftOff}})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if n, least := rows(), 2*len(other)+4*(tokens-1); n < least || n > least+2*(1+snapshotTail) {
				t.Errorf("%d rows for two owners with two requests each, want about %d", n, least)
			}
		})
	}
}

// The same over restarts, for the tier on disk.
func TestOwnersOnDisk(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			load := loadCached(t, name, runtime.Options{PrefixCache: 1 << 20, PrefixDir: t.TempDir()})
			prompt := make([]int32, 40)
			for i := range prompt {
				prompt[i] = 5 + int32(i)
			}
			for i, c := range []struct {
				owner  string
				cached bool
			}{{"a", false}, {"b", false}, {"", false}, {"a", true}, {"b", true}} {
				l := load()
				_, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Owner: c.owner, Prompt: prompt,
					MaxTokens: 1, IgnoreEOS: true})
				if err != nil || last.Stats.CachedTokens > 0 != c.cached {
					t.Errorf("%d, %q: %d cached, %v", i, c.owner, last.Stats.CachedTokens, err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Without the store's secret the model runs without the tier on disk, and a note says why.
func TestPrefixDirWithoutSecret(t *testing.T) {
	st, entry := converttest.Pack(t, "llama-default")
	if err := os.MkdirAll(st.Path(store.SecretFile, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	var notes []string
	l, err := Open(t.Context(), mlxtest.Open(t), st, entry, runtime.Options{PrefixCache: 1 << 20, PrefixDir: t.TempDir(),
		Log: func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, cached := range []int{0, 4} {
		_, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{5, 6, 7, 8, 9}, MaxTokens: 1})
		if err != nil || last.Stats.CachedTokens != cached {
			t.Errorf("%d tokens cached, %v, want %d", last.Stats.CachedTokens, err, cached)
		}
	}
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "the prefix cache on disk is off: the store's secret: ") {
		t.Errorf("notes %q", notes)
	}
}
