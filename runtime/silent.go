package runtime

import (
	"errors"
	"time"
)

// ErrSilent reports a process, or another machine's, that has shown no sign of life for [Silence].
var ErrSilent = errors.New("has not answered")

// Hang is how long a model's process may show no sign of life. Its signs do not wait for the engine, so that it is
// alive during a long prefill or load. It may wait for a processor or for memory, and nobody but its own requests for
// it.
const Hang = 20 * time.Second

// Silence is how long a peer that sends signs of life may show none. It leaves time to end its requests within 10 s.
const Silence = 8 * time.Second
