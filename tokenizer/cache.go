package tokenizer

import (
	"hash/maphash"
	"strings"
)

const (
	cacheSlots   = 1 << 14
	cacheMaxWord = 64 // bytes: longer pieces rarely come twice
)

// wordCache remembers the ids of pieces. Each has one slot that it may lie in, so that the size is bounded and
// a new word simply takes an old one's place. One encoder owns it.
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

// slot is where a piece lies or would lie; nil when it is not to be remembered.
func (c *wordCache) slot(piece string) *cacheSlot {
	if len(piece) > cacheMaxWord {
		return nil
	}
	return &c.slots[maphash.String(c.seed, piece)%cacheSlots]
}

// set copies the piece, which is part of a text of any size.
func (s *cacheSlot) set(piece string, ids []int32) {
	s.key = strings.Clone(piece)
	s.ids = append(s.ids[:0:0], ids...)
}
