package batch

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// What one process has warmed, another one does not evaluate again, for all kinds of layers.
func TestWarm(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			want := newOracle(t, name)
			load := loadCached(t, name, runtime.Options{PrefixCache: 1 << 20, PrefixDir: t.TempDir()})
			beginning := []int32{5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 49}
			l := load()
			if _, err := l.Warm(t.Context(), nil); err == nil {
				t.Error("an empty prompt is accepted")
			}
			if _, err := l.Warm(t.Context(), beginning); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = load()
			defer l.Close()
			prompt := slices.Concat(beginning, []int32{6, 7, 8})
			ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: 8,
				IgnoreEOS: true, Draft: runtime.Draft{Mode: runtime.DraftOff}})
			if err != nil {
				t.Fatal(err)
			}
			if last.Stats.CachedTokens != len(beginning) {
				t.Errorf("%d of %d tokens were cached", last.Stats.CachedTokens, len(beginning))
			}
			if want := want.want(prompt, 8); !slices.Equal(ids, want) {
				t.Errorf("%v, want %v", ids, want)
			}
		})
	}
}
