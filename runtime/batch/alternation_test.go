package batch

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

func TestAlternationChunk(t *testing.T) {
	ms := time.Millisecond
	p := alternation{max: 100 * ms}
	for _, c := range []struct {
		rate   prefillRate
		decode time.Duration
		rows   int
		d      time.Duration
	}{
		{100, 20 * ms, 48, 480 * ms},          // what eight steps gain
		{400, 20 * ms, 192, 480 * ms},         // a faster machine
		{2200, 20 * ms, 0, 0},                 // 132 rows fit into the gap
		{100, 60 * ms, 0, 0},                  // 16 rows would be left
		{100, 80 * ms, 0, 0},                  // decoding takes all of the gap
		{0, 20 * ms, 0, 0},                    // nothing is measured
		{100, 200 * ms, 0, 0},                 // decoding takes longer than the gap
		{300, 5 * ms, 176, 600 * ms},          // what eight steps gain
		{1e6, 79999 * time.Microsecond, 0, 0}, // almost nothing is gained
	} {
		if rows, d := p.chunk(c.rate, c.decode); rows != c.rows || d != c.d {
			t.Errorf("%v rows a second, %v to decode: %d rows in %v, want %d in %v", c.rate, c.decode, rows, d, c.rows, c.d)
		}
	}
	p.max = time.Second
	if rows, d := p.chunk(100, 100*ms); rows != 96 || d != promptStepTime {
		t.Errorf("with a gap of a second: %d rows in %v", rows, d)
	}
}

func TestAlternationDecodeTime(t *testing.T) {
	ms := time.Millisecond
	var p alternation
	if d := p.decodeTime(100, 3); d != 0 {
		t.Errorf("%v before the first measurement", d)
	}
	p.add(2, 20*ms)
	p.add(6, 50*ms)
	p.add(6, 80*ms)
	for decoding, want := range map[int]time.Duration{1: 20 * ms, 2: 20 * ms, 4: 40 * ms, 6: 60 * ms, 8: 80 * ms} {
		if d := p.decodeTime(100, decoding); d != want {
			t.Errorf("%d requests: %v, want %v", decoding, d, want)
		}
	}
}

// While prompts wait, steps alternate: the streams' tokens are the same, and come evenly.
func TestAlternation(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			want, l := newOracle(t, name), cached(t, name, runtime.Options{MaxGap: 10 * time.Millisecond})
			r := rand.New(rand.NewPCG(3, 6))
			stream, prompt := randomPrompt(r, l, 6), randomPrompt(r, l, 120)
			expect, expectAfter := want.want(stream, 60), want.want(prompt, 3)
			started, steps := make(chan struct{}), map[string]int{}
			l.batcher.onStep = func(plan []batchItem) error {
				l.batcher.prefill.rate, l.batcher.prefill.alternation.decode = 1000, map[int]time.Duration{1: 3 * time.Millisecond}
				prefilling, decoding := 0, 0
				for _, s := range plan {
					if s.g.prefilling() {
						prefilling++
					} else {
						decoding++
					}
				}
				switch {
				case len(l.batcher.running) < 2:
				case decoding == 0:
					steps["prefill"]++
				case prefilling == 0:
					steps["decode"]++
				default:
					steps["both"]++
				}
				return nil
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				<-started
				ids, _, _, err := runtimetest.Collect(t.Context(), l,
					runtime.Request{Prompt: prompt, MaxTokens: 3, IgnoreEOS: true})
				if err != nil || !slices.Equal(ids, expectAfter) {
					t.Errorf("the prompt beside a stream: %v, %v; want %v", ids, err, expectAfter)
				}
			})
			var ids []int32
			for e, err := range l.Generate(t.Context(), runtime.Request{Prompt: stream, MaxTokens: 60, IgnoreEOS: true}) {
				if err != nil {
					t.Fatal(err)
				}
				if ids = append(ids, e.IDs...); len(ids) == 4 {
					close(started)
				}
			}
			wg.Wait()
			if !slices.Equal(ids, expect) {
				t.Errorf("the stream: %v, want %v", ids, expect)
			}
			if steps["prefill"] < 2 || steps["decode"] < 2 {
				t.Errorf("steps beside the stream: %v", steps)
			}
		})
	}
}

// Events of a step that runs ahead are sent one after the other, and what follows never overtakes them.
func TestSpacing(t *testing.T) {
	g := newGeneration(t.Context(), runtime.Request{})
	const spacing = 20 * time.Millisecond
	begun := time.Now()
	g.put(runtime.Event{IDs: []int32{0}})
	g.spacing = spacing
	for i := range 3 {
		g.put(runtime.Event{IDs: []int32{int32(i + 1)}})
	}
	g.spacing = 0
	g.put(runtime.Event{IDs: []int32{4}})
	g.out.End(nil)
	next := int32(0)
	err := g.out.Each(t.Context(), func(e runtime.Event) bool {
		if e.IDs[0] != next {
			t.Errorf("event %d comes at the place of %d", e.IDs[0], next)
		}
		if d := time.Since(begun); d < time.Duration(min(next, 3))*spacing {
			t.Errorf("event %d comes after %v", next, d)
		}
		next++
		return true
	})
	if err != nil || next != 5 {
		t.Errorf("%d events, %v", next, err)
	}
}
