package mlx

import (
	"strconv"

	"github.com/ingotml/ingot/mlx/machine"
)

// Memory is a snapshot of the engine's memory counters, in bytes except for Arrays.
type Memory struct {
	Active int64 // used by arrays; mapped files do not count
	Peak   int64 // largest Active since the start or ResetPeak
	Cached int64 // free buffers kept for reuse
	Mapped int64 // files mapped as weights
	Budget int64 // limit of SetBudget
	Arrays int64 // live array handles
}

// The codes of bridge.h.
const (
	counterActive = iota
	counterPeak
	counterCached
	counterBudget
	counterMapped
	counterHandles
	counterBuffers
)

const (
	limitBudget = iota
	limitCache
	limitWired
	limitResetPeak
	limitClearCache
)

// Memory reads the counters.
func (t *Thread) Memory() Memory {
	read := func(which int32) int64 { return cCounter(which, nil, 0) }
	return Memory{
		Active: read(counterActive), Peak: read(counterPeak), Cached: read(counterCached),
		Mapped: read(counterMapped), Budget: read(counterBudget), Arrays: read(counterHandles),
	}
}

// SetBudget limits Active. An operation whose result alone exceeds the remaining budget fails with ErrOutOfMemory.
func (t *Thread) SetBudget(bytes int64) { t.limit("SetBudget", limitBudget, bytes) }

// SetCacheLimit limits the memory of buffers kept for reuse.
func (t *Thread) SetCacheLimit(bytes int64) { t.limit("SetCacheLimit", limitCache, bytes) }

// SetWiredLimit limits the memory that Metal keeps resident.
func (t *Thread) SetWiredLimit(bytes int64) { t.limit("SetWiredLimit", limitWired, bytes) }

// ResetPeak sets Peak to Active.
func (t *Thread) ResetPeak() { t.limit("ResetPeak", limitResetPeak, 0) }

// ClearCache frees the buffers and the scratch memory that are kept for reuse, and returns free memory to the system.
func (t *Thread) ClearCache() { t.limit("ClearCache", limitClearCache, 0) }

func (t *Thread) limit(op string, which int32, value int64) { t.must(prefix(op, cLimit(which, value))) }

// BufferBytes evaluates arrays and returns the total size of the buffers behind them, each counted once: the memory
// that they keep allocated. Arrays over mapped files are not allowed.
func BufferBytes(arrays ...*Array) int64 {
	Eval(arrays...)
	t, handles := handlesOf("BufferBytes", arrays)
	if t == nil {
		return 0
	}
	p, n := t.frame.pointers(handles)
	return cCounter(counterBuffers, p, n)
}

// DefaultBudget returns the memory that arrays may use, in bytes: the memory of the GPU, or else the lesser of the
// machine's memory and the cgroup's limit, minus a reserve for everything else.
func DefaultBudget(i Info) int64 {
	limit := int64(0)
	if i.GPU {
		for _, key := range []string{"max_recommended_working_set_size", "total_memory", "memory_size"} {
			if limit, _ = strconv.ParseInt(i.Device[key], 10, 64); limit > 0 {
				break
			}
		}
	}
	if limit <= 0 {
		limit = machine.Memory()
	}
	if limit <= 0 {
		return 4 << 30 // unknown: small enough for most machines
	}
	return BudgetOf(limit)
}

// BudgetOf returns the memory that arrays may use of the given memory: all but a reserve for everything else.
func BudgetOf(memory int64) int64 { return memory - memory/16 - min(memory/8, 256<<20) }
