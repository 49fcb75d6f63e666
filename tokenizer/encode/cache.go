package encode

import (
	"hash/maphash"
	"strings"
)

const (
	cacheSlots   = 1 << 14
	cacheMaxWord = 64 // bytes: longer pieces rarely recur
)

// wordCache is a direct-mapped cache from pieces to their ids. Each piece has one slot, so the size is bounded and a
// new piece evicts the old one. It belongs to one encoder.
type wordCache struct {
	seed  maphash.Seed
	slots []cacheSlot
}

type cacheSlot struct {
	key string
	ids []int32
}

func newWordCache() *wordCache {
	return &wordCache{seed: maphash.MakeSeed(), slots: make([]cacheSlot, cacheSlots)}
}

// slot returns the slot of a piece, or nil if the piece is too long to be cached.
func (c *wordCache) slot(piece string) *cacheSlot {
	if len(piece) > cacheMaxWord {
		return nil
	}
	return &c.slots[maphash.String(c.seed, piece)%cacheSlots]
}

// set stores a copy of the piece: a substring would keep the whole text in memory.
func (s *cacheSlot) set(piece string, ids []int32) {
	s.key = strings.Clone(piece)
	s.ids = append(s.ids[:0:0], ids...)
}
