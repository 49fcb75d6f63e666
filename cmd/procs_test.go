package cmd

import (
	"runtime"
	"testing"
)

func TestOversubscribe(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Setenv("GOMAXPROCS", "")
	cores, restore := oversubscribe()
	during := runtime.GOMAXPROCS(0)
	restore()
	if after := runtime.GOMAXPROCS(0); cores != before || during != 2*before || after != before {
		t.Errorf("cores %d, GOMAXPROCS %d before, %d during, %d after", cores, before, during, after)
	}
	t.Setenv("GOMAXPROCS", "1")
	cores, restore = oversubscribe()
	defer restore()
	if during := runtime.GOMAXPROCS(0); cores != before || during != before {
		t.Errorf("set by the user: cores %d, GOMAXPROCS %d, want %d", cores, during, before)
	}
}
