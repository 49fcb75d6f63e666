package dfa

import "sync"

// Cache keeps automata by key for the life of the process: keys must come from a fixed set, never from a request. It
// is safe for concurrent use.
type Cache struct {
	make func(key string) (*DFA, error)
	made sync.Map
}

// NewCache returns a cache that makes an automaton with build.
func NewCache(build func(key string) (*DFA, error)) *Cache { return &Cache{make: build} }

// Get returns the automaton of a key.
func (c *Cache) Get(key string) (*DFA, error) {
	if d, ok := c.made.Load(key); ok {
		return d.(*DFA), nil
	}
	d, err := c.make(key)
	if err == nil {
		c.made.Store(key, d)
	}
	return d, err
}
