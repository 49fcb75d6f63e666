// Package keys has the API keys of a server: whose they are, and how much each may use.
//
// Contract:
//   - A key has a name, which logs and metrics show. The key itself is in no message.
//   - A key has an owner, to whom belongs what a server keeps: its name, so that another key may take its place, or
//     the hash of a key that has no name in its file. So no change of a file gives it to somebody else.
//   - Keys are compared in a time that does not depend on them.
//   - A file is read again when it changes: see [reload]. What a key has used stays with its name.
//   - Limits are per key: requests that run at once, and tokens a minute. Tokens are charged when they have been
//     computed, so a request that was admitted runs to its end, and the next one waits for what it used too much.
//   - All types are safe for concurrent use.
package keys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"sync"

	"github.com/ingotml/ingot/server/reload"
)

// Default is the name of a key that was given without one.
const Default = "default"

// Keys are the keys of a server.
type Keys struct {
	list func() []entry

	mu  sync.Mutex
	use map[string]*usage // by name
}

// entry is a key in memory.
type entry struct {
	sum   [sha256.Size]byte // SHA-256 of the key, which makes all keys equally long
	name  string
	owner string
	limit Limit
	sees  bool
}

// One returns a single key, without limits.
func One(secret string) *Keys {
	list := []entry{{sum: sha256.Sum256([]byte(secret)), name: Default, owner: Default}}
	return &Keys{list: func() []entry { return list }}
}

// Open reads a file of keys. log gets what happens to the file later. See Parse for its form.
func Open(path string, log func(format string, args ...any)) (*Keys, error) {
	v, err := reload.Load(func() ([]entry, error) { return readFile(path) }, log, path)
	if err != nil {
		return nil, err
	}
	return &Keys{list: v.Get}, nil
}

// Find returns the key that one of the given texts is, or nil.
func (k *Keys) Find(given ...string) *Key {
	var found *entry
	list := k.list()
	for _, text := range given {
		sum := sha256.Sum256([]byte(text))
		for i := range list {
			if subtle.ConstantTimeCompare(sum[:], list[i].sum[:]) == 1 {
				found = &list[i]
			}
		}
	}
	if found == nil {
		return nil
	}
	return k.of(found)
}

// Owned returns the key of an owner, for work that a request has left. If there is none any more, it returns one
// without limits. The request of the owner "" had no key.
func (k *Keys) Owned(owner string) *Key {
	if owner == "" {
		return nil
	}
	if k != nil {
		list := k.list()
		if i := slices.IndexFunc(list, func(e entry) bool { return e.owner == owner }); i >= 0 {
			return k.of(&list[i])
		}
	}
	return &Key{owner, owner, newUsage(Limit{})}
}

// Sees reports whether a request may read what all keys have used: with any key, or only with those that the file says,
// if it names some. Counters that are read often tell how long each prompt was.
func (k *Keys) Sees(key *Key) bool {
	if k == nil {
		return true
	}
	some := false
	for _, e := range k.list() {
		if e.sees && e.owner == key.Owner() {
			return true
		}
		some = some || e.sees
	}
	return !some
}

func (k *Keys) of(found *entry) *Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.use == nil {
		k.use = map[string]*usage{}
	}
	u := k.use[found.name]
	if u == nil {
		u = newUsage(found.limit)
		k.use[found.name] = u
	}
	u.set(found.limit)
	return &Key{found.name, found.owner, u}
}

// Key is the key of a request. All methods accept nil, for a request without one.
type Key struct {
	name, owner string
	use         *usage
}

// String returns the key's name, or "".
func (k *Key) String() string {
	if k == nil {
		return ""
	}
	return k.name
}

// Owner returns to whom belongs what a server keeps of the key's requests, or "" for requests without a key.
func (k *Key) Owner() string {
	if k == nil {
		return ""
	}
	return k.owner
}

type contextKey struct{}

// With returns a context with the key of its request.
func With(ctx context.Context, k *Key) context.Context {
	if k == nil {
		return ctx
	}
	return context.WithValue(ctx, contextKey{}, k)
}

// From returns the key of a context's request, or nil.
func From(ctx context.Context) *Key {
	k, _ := ctx.Value(contextKey{}).(*Key)
	return k
}
