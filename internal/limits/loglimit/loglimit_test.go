package loglimit_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/loglimit"
)

// TestBounds checks that each kind of line has its bound in each interval, and that no line goes uncounted.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var lines []string
		log := loglimit.New(func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, fmt.Sprintf(format, args...))
		})
		took := func(what string, want ...string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(lines, want) {
				t.Errorf("%s: %q, want %q", what, lines, want)
			}
			lines = nil
		}
		var first []string
		for i := range limits.LogLines {
			first = append(first, fmt.Sprintf("refused %d", i))
		}
		for i := range 100_000 {
			log.Printf("refused %d", i)
		}
		took("a flood", first...)
		log.Printf("started %s", "a")
		took("another kind", "started a")
		interval := limits.LogInterval * time.Second
		const summary = "99980 more lines like this one in the last 60 s: refused 99999"
		time.Sleep(interval)
		synctest.Wait()
		took("the end of the interval", summary)
		log.Printf("refused %d", 7)
		took("the next interval", "refused 7")
		time.Sleep(interval)
		synctest.Wait()
		took("an interval with few")
		for i := range 100_000 {
			log.Printf("refused %d", i)
		}
		log.Close()
		took("the end", append(first, summary)...)
		log.Printf("a line at the end: 100%%")
		took("after the end", "a line at the end: 100%")
	})
	var line string
	log := loglimit.New(func(format string, args ...any) { line = fmt.Sprintf(format, args...) })
	defer log.Close()
	log.Printf("%s", strings.Repeat("x", 20<<20))
	if len(line) > limits.LogLine+3 {
		t.Errorf("a line of %d bytes", len(line))
	}
}
