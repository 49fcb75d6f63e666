package waiting

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

// Waits for the end of a rate limit.
const (
	firstPause = time.Second      // without a hint; each further one is twice as long
	maxPause   = time.Minute      // without a hint: limits are per minute or less, or not worth waiting for
	MaxHint    = 6 * time.Minute  // a server that asks for more is not waited for; the hub limits per five minutes
	MaxLimited = 10 * time.Minute // one operation waits this long in all, if nothing moves meanwhile
)

// millis is the factor by which a wait in milliseconds is too long if it is read as seconds.
const millis = 1000

// Gate is closed while a host limits requests. The zero value is open.
type Gate struct {
	mu     sync.Mutex
	until  time.Time // when it opens; zero: it is open
	closed time.Time // when it was last closed
	level  int       // closed so often, less the times when a request passed after that
	tried  bool      // a request has passed since it was last closed
}

// Gates are the gates of a client's hosts. The zero value has none yet.
type Gates struct {
	mu sync.Mutex
	of map[string]*Gate
}

// Of returns the gate of a host. Beyond [limits.NamedHosts] of them, hosts share one.
func (g *Gates) Of(host string) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[string]*Gate{"": {}}
	}
	if g.of[host] == nil && len(g.of) > limits.NamedHosts {
		return g.of[""]
	}
	if g.of[host] == nil {
		g.of[host] = &Gate{}
	}
	return g.of[host]
}

// Allowance is how long one operation may wait for limits. Progress gives it a new one.
type Allowance struct {
	waited  time.Duration
	tooLong bool // a server has asked for more than MaxHint
}

// May reports whether the operation may wait for a server that asks for this long; 0: it does not say.
func (a *Allowance) May(hint time.Duration) bool {
	return a.waited < MaxLimited && hint <= MaxHint*millis && !(a.tooLong && hint > MaxHint)
}

// Wait waits at a gate. The caller has asked May.
func (a *Allowance) Wait(ctx context.Context, g *Gate, hint time.Duration,
	sleep func(context.Context, time.Duration) error) error {
	a.tooLong = hint > MaxHint
	a.waited += max(g.Remaining(), time.Second)
	return g.Enter(ctx, sleep)
}

// Enter waits until the gate is open, with sleep, which tests replace.
func (g *Gate) Enter(ctx context.Context, sleep func(context.Context, time.Duration) error) error {
	for {
		g.mu.Lock()
		until := g.until
		g.mu.Unlock()
		wait := time.Until(until)
		if until.IsZero() || wait <= 0 {
			return nil
		}
		// Requests that waited together are spread, so that the first finds out whether the limit has ended.
		resume := Pause(ctx)
		err := sleep(ctx, wait+rand.N(wait/4+time.Millisecond))
		resume()
		if err != nil {
			return err
		}
		g.mu.Lock()
		if g.until.Equal(until) {
			g.until = time.Time{}
		}
		g.mu.Unlock()
	}
}

// Remaining returns how long the gate stays closed; 0: it is open.
func (g *Gate) Remaining() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until.IsZero() {
		return 0
	}
	return max(time.Until(g.until), 0)
}

// Limited closes the gate, because the response to a request that was sent at this time said that requests are limited.
// hint is how long the server asks to wait; 0: it does not say. Limited returns how long the gate is closed if that is
// news, else 0: a request that was sent before the gate was closed only says the same again.
func (g *Gate) Limited(sent time.Time, hint time.Duration) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	again := !g.closed.IsZero() && !sent.After(g.closed)
	if hint > MaxHint {
		hint /= millis // perhaps in milliseconds; else the next response says the same, and nobody waits for it
	}
	pause := hint
	switch {
	case again && hint == 0:
		return 0
	case !again:
		g.level++
		g.tried = false
	}
	if hint == 0 {
		pause = min(firstPause<<min(g.level-1, 10), maxPause)
	}
	until := now.Add(pause)
	if again && until.Sub(g.until) < time.Second {
		return 0
	}
	g.until = until
	if !again {
		g.closed = now
	}
	return pause
}

// Passed notes a response to a request that was sent at this time and not limited. So a limit per minute is waited for
// about as long as the last time, and one that has ended is forgotten.
func (g *Gate) Passed(sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.level > 0 && !g.tried && sent.After(g.closed) {
		g.level--
		g.tried = true
	}
}
