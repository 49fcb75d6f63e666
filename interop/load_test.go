package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	loadClients = 12
	loadRest    = 10 * time.Second // after each wave: an idle model returns memory within this time
	loadSlackMB = 8                // of memory, for what a Go heap varies by
	loadSlack   = 4                // goroutines and files: idle connections, timers of the last requests
)

// TestLoad runs clients of all APIs against `ingot serve`: requests that are canceled or wrong, pictures, models that
// are unloaded and loaded again, and clients that read slowly. Responses must be as expected, and after each wave of
// load memory, files and goroutines must be as before. INGOT_LOAD is the length of all waves.
func TestLoad(t *testing.T) {
	length, waves := 6*time.Second, 2
	if text := os.Getenv("INGOT_LOAD"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		waves = 10
	}
	u := newChatUser(t)
	l := &load{user: u, server: u.serve("--keep-alive", "1h", "--cache-size", "2MB"), counts: map[string]int{}}
	l.wave(0, 3*time.Second) // allocates what lasts
	before := l.settle()
	for n := range waves {
		l.wave(n+1, length/time.Duration(waves))
		after := l.settle()
		t.Logf("wave %d: %v, before %v", n+1, after, before)
		if after.requests != 0 {
			t.Errorf("wave %d: the server counts %d requests, and none is running", n+1, after.requests)
		}
		if after.memoryMB > before.memoryMB*11/10+loadSlackMB {
			t.Errorf("wave %d: %d MB of memory, %d before", n+1, after.memoryMB, before.memoryMB)
		}
		if after.goroutines > before.goroutines+loadSlack || after.files > before.files+loadSlack {
			t.Errorf("wave %d: %d goroutines and %d files, before %d and %d", n+1, after.goroutines, after.files,
				before.goroutines, before.files)
		}
	}
	for i, text := range l.unexpected {
		if i == 10 {
			break
		}
		t.Error(text)
	}
	t.Logf("%v, %d unexpected responses", l.counts, len(l.unexpected))
	for kind := range loadKinds {
		if l.counts[kind] == 0 {
			t.Errorf("no request of kind %s was answered", kind)
		}
	}
}

// load is a server under load, and what its clients have seen.
type load struct {
	*user
	*server

	mu         sync.Mutex
	counts     map[string]int // answered requests by kind
	unexpected []string
}

// wave sends requests for a while and waits for the last responses.
func (l *load) wave(n int, length time.Duration) {
	ctx, cancel := context.WithTimeout(l.user.t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	for i := range loadClients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), uint64(i)))
			for ctx.Err() == nil {
				l.request(r)
			}
		})
	}
	wg.Wait()
}

// request sends a random request.
func (l *load) request(r *rand.Rand) {
	kind := loadOrder[r.IntN(len(loadOrder))]
	err := loadKinds[kind](l, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts[kind]++; err != nil {
		l.unexpected = append(l.unexpected, fmt.Sprintf("%s: %v", kind, err))
	}
}
