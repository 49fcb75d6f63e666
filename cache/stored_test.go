package cache

import "testing"

// Storage grows by few positions while there are few, and is not much larger than what it holds.
func TestCeil(t *testing.T) {
	for n, want := range map[int]int{
		0: 0, 1: 256, 256: 256, 257: 512, 4097: 4352, 8192: 8192, 8193: 8704, 16384: 16384, 16385: 17408, 60_000: 61_440,
	} {
		if got := ceil(n); got != want {
			t.Errorf("room for %d positions is %d, want %d", n, got, want)
		}
	}
	grown := 0
	for n, last := 1, 0; n <= 1<<17; n++ {
		got := ceil(n)
		if got < n || got > n+max(step, n/16) || got < last {
			t.Fatalf("room for %d positions is %d, for one less %d", n, got, last)
		}
		if got > last {
			grown++
		}
		last = got
	}
	if grown > 100 {
		t.Errorf("131,072 positions are copied %d times", grown)
	}
}
