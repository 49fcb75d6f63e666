package prefix

import "testing"

// Each process that a conversation goes on in leaves a longer file. The next one reads the longest, and nothing of what
// its memory has.
func TestFetchReadsOnce(t *testing.T) {
	for _, env := range environments {
		t.Run(env.name, func(t *testing.T) {
			o, said := DiskOptions{Dir: t.TempDir()}, keys(1, 40)
			for range 3 {
				said = join(said, keys(len(said)+1, len(said)+9))
				life(t, env, 0, o, func(w *world) { w.run(said) })
			}
			s := life(t, env, 0, o, func(w *world) {
				w.wantRun(1, 0, join(said, []Key{900}))
				loaded := w.disk.Stats().Loaded
				w.wantRun(1, 0, join(said, []Key{900, 901}))
				if now := w.disk.Stats().Loaded; now != loaded {
					t.Errorf("%d nodes read that memory has", now-loaded)
				}
			})
			if s.Loaded != 1 {
				t.Errorf("%d nodes read, want the longest alone", s.Loaded)
			}
		})
	}
}
