package keys

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/runtime"
)

// Limit is how much a key may use. 0: no limit.
type Limit struct {
	Requests        int // that run at once
	TokensPerMinute int
}

// ErrRequests reports that a key runs as many requests as it may.
var ErrRequests = fault.Register(errors.New("too many requests at once for the key"), fault.Kind{
	Name: "server/keys.ErrRequests", Means: "an API key runs as many requests as it may",
	Rank: fault.Resource + 10, Status: fault.TooMany, Code: fault.CodeRate,
})

// ErrTokens reports that a key has used its tokens.
var ErrTokens = fault.Register(errors.New("too many tokens a minute for the key"), fault.Kind{
	Name: "server/keys.ErrTokens", Means: "an API key has used the tokens that it may use a minute",
	Rank: fault.Resource + 11, Status: fault.TooMany, Code: fault.CodeRate,
})

// usage is what a key uses and has used.
type usage struct {
	mu      sync.Mutex
	limit   Limit
	running int
	balance float64   // tokens that may be used now; negative: used in advance
	at      time.Time // of the balance
	now     func() time.Time

	requests          map[int]int64 // by status
	prompt, generated int64         // tokens
}

func newUsage(l Limit) *usage {
	u := &usage{now: time.Now, requests: map[int]int64{}}
	u.set(l)
	return u
}

// set changes the limits, which may differ after the file was read again.
func (u *usage) set(l Limit) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.limit != l {
		u.limit, u.balance, u.at = l, float64(l.TokensPerMinute), u.now()
	}
}

// refill adds the tokens of the time since the last call: at most those of a minute are saved.
func (u *usage) refill() {
	now, most := u.now(), float64(u.limit.TokensPerMinute)
	u.balance = min(u.balance+max(now.Sub(u.at), 0).Minutes()*most, most)
	u.at = now
}

// Begin admits a request, which ends with done. Its error is one of the limits, and says when to try again.
func (k *Key) Begin() (done func(), err error) {
	if k == nil {
		return func() {}, nil
	}
	u := k.use
	u.mu.Lock()
	defer u.mu.Unlock()
	if most := u.limit.Requests; most > 0 && u.running >= most {
		return nil, &runtime.RetryError{After: time.Second,
			Err: fmt.Errorf("%w: %d run, at most %d are allowed", ErrRequests, u.running, most)}
	}
	if most := u.limit.TokensPerMinute; most > 0 {
		if u.refill(); u.balance <= 0 {
			wait := time.Duration((1 - u.balance) / float64(most) * float64(time.Minute))
			return nil, &runtime.RetryError{After: wait,
				Err: fmt.Errorf("%w: at most %d are allowed; try again in %d s", ErrTokens, most, int(wait.Seconds())+1)}
		}
	}
	u.running++
	return sync.OnceFunc(func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.running--
	}), nil
}

// GoOn counts work that goes on after its request, which Begin has admitted, until done.
func (k *Key) GoOn() (done func()) {
	if k == nil {
		return func() {}
	}
	u := k.use
	count := func(n int) {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.running += n
	}
	count(1)
	return sync.OnceFunc(func() { count(-1) })
}

// Charge counts tokens that have been computed: of a prompt, and generated.
func (k *Key) Charge(prompt, generated int) {
	if k == nil || prompt+generated == 0 {
		return
	}
	u := k.use
	u.mu.Lock()
	defer u.mu.Unlock()
	u.prompt += int64(prompt)
	u.generated += int64(generated)
	if u.limit.TokensPerMinute > 0 {
		u.refill()
		u.balance -= float64(prompt + generated)
	}
}

// Count counts a request that ended with a status.
func (k *Key) Count(status int) {
	if k == nil {
		return
	}
	k.use.mu.Lock()
	defer k.use.mu.Unlock()
	k.use.requests[status]++
}

// State is what a key has used.
type State struct {
	Name              string
	Requests          map[int]int64 // by status
	Running           int
	Prompt, Generated int64 // tokens
}

// States returns the keys that were used, by name.
func (k *Keys) States() (list []State) {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	use := maps.Clone(k.use)
	k.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(use)) {
		u := use[name]
		u.mu.Lock()
		list = append(list, State{name, maps.Clone(u.requests), u.running, u.prompt, u.generated})
		u.mu.Unlock()
	}
	return list
}
