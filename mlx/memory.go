package mlx

// Memory is what the engine holds, in bytes, but for Arrays.
type Memory struct {
	Active int64 // in use by arrays; mapped files do not count
	Peak   int64 // largest Active since the start or ResetPeak
	Cached int64 // kept for reuse
	Mapped int64 // files mapped as weights
	Budget int64 // what SetBudget allows
	Arrays int64 // live array handles
}

// Codes of bridge.h.
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

// SetBudget bounds Active: an operation whose result alone does not fit in what is left fails with ErrOutOfMemory.
func (t *Thread) SetBudget(bytes int64) { t.limit("SetBudget", limitBudget, bytes) }

// SetCacheLimit bounds the memory that is kept for reuse.
func (t *Thread) SetCacheLimit(bytes int64) { t.limit("SetCacheLimit", limitCache, bytes) }

// SetWiredLimit bounds the memory that Metal keeps resident.
func (t *Thread) SetWiredLimit(bytes int64) { t.limit("SetWiredLimit", limitWired, bytes) }

// ResetPeak starts Peak anew.
func (t *Thread) ResetPeak() { t.limit("ResetPeak", limitResetPeak, 0) }

// ClearCache gives back what is kept for reuse.
func (t *Thread) ClearCache() { t.limit("ClearCache", limitClearCache, 0) }

func (t *Thread) limit(op string, which int32, value int64) { t.must(prefix(op, cLimit(which, value))) }

// BufferBytes evaluates arrays and gives the bytes of the buffers behind them, each counted once: what they really keep
// alive. Arrays over mapped files must not be among them.
func BufferBytes(arrays ...*Array) int64 {
	Eval(arrays...)
	t, handles := handlesOf("BufferBytes", arrays)
	if t == nil {
		return 0
	}
	p, n := t.frame.pointers(handles)
	return cCounter(counterBuffers, p, n)
}
