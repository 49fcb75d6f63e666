package readahead

import (
	"context"
	"sync"
)

// blockSize is what is requested for a short read that was not announced: scales of a quantized checkpoint and the
// matrices of an adapter are read again and again, a few rows at a time.
const blockSize = 1 << 20

// blocks keeps the most recent blocks of files. It is safe for concurrent use.
type blocks struct {
	fetch func(file string, p []byte, offset int64) error
	max   int64 // bytes

	mu     sync.Mutex
	blocks map[blockKey]*block
	order  []blockKey // the most recent last
	used   int64
}

type blockKey struct {
	file string
	n    int64 // offset / blockSize
}

type block struct {
	ready chan struct{}
	data  []byte
	err   error
}

func newBlocks(max int64, fetch func(file string, p []byte, offset int64) error) *blocks {
	return &blocks{fetch: fetch, max: max, blocks: map[blockKey]*block{}}
}

// read fills p with the bytes of a file, whose size is given.
func (b *blocks) read(ctx context.Context, file string, size int64, p []byte, offset int64) error {
	if int64(len(p)) >= blockSize/2 {
		return b.fetch(file, p, offset)
	}
	for len(p) > 0 {
		key := blockKey{file, offset / blockSize}
		k, mine := b.get(key)
		begin := key.n * blockSize
		if mine {
			data := make([]byte, min(size-begin, blockSize))
			k.err = b.fetch(file, data, begin)
			k.data = data
			close(k.ready)
			b.trim(key, k)
		}
		select {
		case <-k.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if k.err != nil {
			return k.err
		}
		n := copy(p, k.data[offset-begin:])
		p, offset = p[n:], offset+int64(n)
	}
	return nil
}

// get returns a block; mine says that the caller has to fill it.
func (b *blocks) get(key blockKey) (k *block, mine bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k, ok := b.blocks[key]; ok {
		for i, other := range b.order {
			if other == key {
				b.order = append(append(b.order[:i:i], b.order[i+1:]...), key)
				break
			}
		}
		return k, false
	}
	k = &block{ready: make(chan struct{})}
	b.blocks[key] = k
	return k, true
}

// trim accounts for a new block, or drops it after an error, and drops the oldest ones.
func (b *blocks) trim(key blockKey, k *block) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.err != nil {
		delete(b.blocks, key)
		return
	}
	b.order = append(b.order, key)
	b.used += int64(len(k.data))
	for b.used > b.max && len(b.order) > 1 {
		old := b.order[0]
		b.used -= int64(len(b.blocks[old].data))
		delete(b.blocks, old)
		b.order = b.order[1:]
	}
}
