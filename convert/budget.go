package convert

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
)

// DefaultMemory is what a run may take when nothing else is asked for.
const DefaultMemory = 1 << 30

const (
	slabSize    = 1 << 20  // what one piece of a tensor takes in memory: its source, what it becomes, and steps between
	spare       = 48 << 20 // for what is not in slabs: stacks, headers, the program itself
	maxAhead    = 3        // slabs for each processor: one that it works on, others that are coded ahead where it has time
	fewestSlabs = 2
)

// slabs is the memory of a run: a fixed number of buffers, made when they are needed first.
type slabs struct {
	free chan []byte // nil ones are not made yet
}

// newSlabs divides memory, of which the process already has a part, for n processors.
func newSlabs(memory int64, n int) (*slabs, error) {
	if memory == 0 {
		memory = DefaultMemory
	}
	taken := resident()
	if taken+spare+fewestSlabs*slabSize > memory {
		debug.FreeOSMemory() // of headers and the tokenizer, which are read by now
		taken = resident()
	}
	count := (memory - taken - spare) / slabSize
	if count < fewestSlabs {
		return nil, fmt.Errorf("the memory limit of %d MiB is too small for this model: it needs %d MiB", memory>>20,
			(taken+spare+fewestSlabs*slabSize)>>20+1)
	}
	count = min(count, int64(maxAhead*n)+1)
	s := &slabs{free: make(chan []byte, count)}
	for range count {
		s.free <- nil
	}
	return s, nil
}

// resident is about what the process has in memory.
func resident() int64 {
	m := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	return int64(m[0].Value.Uint64() - m[1].Value.Uint64())
}

// get waits for a slab.
func (s *slabs) get(ctx context.Context) ([]byte, error) {
	select {
	case b := <-s.free:
		return ready(b), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// try gives a slab if one is free.
func (s *slabs) try() ([]byte, bool) {
	select {
	case b := <-s.free:
		return ready(b), true
	default:
		return nil, false
	}
}

func ready(b []byte) []byte {
	if b == nil {
		b = make([]byte, slabSize)
	}
	return b
}

func (s *slabs) put(b []byte) { s.free <- b }
