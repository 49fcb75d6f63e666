package models

import (
	"runtime"
	"testing"
)

func TestOversubscribe(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	cores, restore := oversubscribe()
	during := runtime.GOMAXPROCS(0)
	restore()
	if after := runtime.GOMAXPROCS(0); cores != before || during != 2*before || after != before {
		t.Errorf("cores %d, GOMAXPROCS %d before, %d during, %d after", cores, before, during, after)
	}
}
