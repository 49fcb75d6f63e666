package write

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// DefaultMemory is the memory limit of a run if none is set.
const DefaultMemory = 1 << 30

const (
	slabSize          = 1 << 20  // memory for one batch of a tensor: its source, its result, and intermediate values
	reserved          = 48 << 20 // memory outside of slabs: stacks, headers, the program itself
	slabsPerProcessor = 3        // one in progress, the others for batches encoded ahead
	minSlabs          = 2
)

// slabs is the memory of a run: a fixed number of buffers, allocated at first use. The one that was released last is
// used next, because a processor's cache still has it.
type slabs struct {
	free chan struct{} // one for each free buffer

	mu   sync.Mutex
	list [][]byte // free buffers; there are more to be allocated if free has more
}

// newSlabs divides the memory limit among n processors, after subtracting what the process already uses.
func newSlabs(memory int64, n int) (*slabs, error) {
	if memory == 0 {
		memory = DefaultMemory
	}
	taken := resident()
	if taken+reserved+minSlabs*slabSize > memory {
		debug.FreeOSMemory() // headers and the tokenizer have been parsed and are garbage
		taken = resident()
	}
	count := (memory - taken - reserved) / slabSize
	if count < minSlabs {
		return nil, fmt.Errorf("the memory limit of %d MiB is too small for this model: it needs %d MiB",
			memory>>20, (taken+reserved+minSlabs*slabSize)>>20+1)
	}
	count = min(count, int64(slabsPerProcessor*n)+1)
	s := &slabs{free: make(chan struct{}, count)}
	for range count {
		s.free <- struct{}{}
	}
	return s, nil
}

// resident estimates the memory that the process uses.
func resident() int64 {
	m := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	return int64(m[0].Value.Uint64() - m[1].Value.Uint64())
}

// get waits for a slab.
func (s *slabs) get(ctx context.Context) ([]byte, error) {
	select {
	case <-s.free:
		return s.take(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// try returns a slab if one is free.
func (s *slabs) try() ([]byte, bool) {
	select {
	case <-s.free:
		return s.take(), true
	default:
		return nil, false
	}
}

// take returns the buffer that was released last, or a new one. The caller has received from free.
func (s *slabs) take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.list) - 1
	if last < 0 {
		return make([]byte, slabSize)
	}
	b := s.list[last]
	s.list = s.list[:last]
	return b
}

func (s *slabs) put(b []byte) {
	s.mu.Lock()
	s.list = append(s.list, b)
	s.mu.Unlock()
	s.free <- struct{}{}
}
