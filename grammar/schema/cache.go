package schema

import (
	"sync"

	"github.com/ingotml/ingot/grammar/dfa"
)

// cache keeps the automata of patterns that schemas share: those of the formats and of numbers, a fixed set.
type cache struct {
	make func(key string) (*dfa.DFA, error)
	made sync.Map
}

func newCache(build func(key string) (*dfa.DFA, error)) *cache { return &cache{make: build} }

func (c *cache) get(key string) (*dfa.DFA, error) {
	if d, ok := c.made.Load(key); ok {
		return d.(*dfa.DFA), nil
	}
	d, err := c.make(key)
	if err == nil {
		c.made.Store(key, d)
	}
	return d, err
}
