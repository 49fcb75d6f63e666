package runtime

import "time"

// Options says how a model is loaded. The zero value computes in the type of the weights.
type Options struct {
	Float32 bool   // activations, accumulation and caches in float32; weights are converted exactly
	KV      KVType // type of the KV cache
	// PrefixCache is the size of the prefix cache in bytes. 0: none; negative: a quarter of the engine's memory that
	// the weights leave.
	PrefixCache int64
	// PrefixDir is the folder of the prefix cache's second tier, which later processes can use too; empty: none.
	// Several models may share a folder.
	PrefixDir  string
	PrefixDisk int64 // bound of the second tier in bytes; 0: none
	Sequences  int   // requests in a batch; 0: 32
	Queue      int   // requests that may wait for a slot; 0: 512
	Memory     int64 // bytes for the state of all running requests; 0: what the engine's memory leaves, negative: no limit
	Chunk      int   // prefill rows in a step; 0: as many as fit into its target time
	Draft      DraftOptions

	// MaxGap bounds how long a running stream waits for its next token while prompts are in prefill: the prefill rows of
	// a step are chosen so that 99 % of the gaps are shorter. 0: 150 ms.
	MaxGap time.Duration

	// Stages are the numbers of layers that the ranks of a pipeline have, by rank; nil: ranks divide tensors, or there is
	// one rank.
	Stages []int

	Log    func(format string, args ...any) // for the operator; may be nil
	Loaded func(part float64)               // reports the progress of loading, 0 to 1; may be nil
	Phase  func(name string)                // called when a phase of loading begins, in order; may be nil
}

// Begin calls Phase, if there is one.
func (o Options) Begin(phase string) {
	if o.Phase != nil {
		o.Phase(phase)
	}
}
