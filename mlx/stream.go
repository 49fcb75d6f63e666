package mlx

// Stream is a queue of work on one device. Operations of a stream run in order.
type Stream struct{ index int32 }

// NewStream makes a stream on the GPU or the CPU.
func (t *Thread) NewStream(gpu bool) Stream {
	i, failed := cStreamNew(gpu)
	t.must(prefix("NewStream", failed))
	return Stream{i}
}

// WithStream runs fn with s as the current stream. The zero Stream is the device's default stream.
func (t *Thread) WithStream(s Stream, fn func()) {
	old := t.stream
	t.useStream(s)
	defer t.useStream(old)
	fn()
}

func (t *Thread) useStream(s Stream) {
	t.must(prefix("WithStream", cStreamUse(s.index)))
	t.stream = s
}

// Synchronize waits until the current stream has finished its work.
func (t *Thread) Synchronize() { t.must(prefix("Synchronize", cSynchronize())) }
