package runtime

import (
	"errors"
	"time"
)

// ErrSilent reports a process, or another machine's, that has shown no sign of life for [Silence].
var ErrSilent = errors.New("has not answered")

// Silence is how long a peer that sends signs of life may show none. It leaves time to end its requests within 10 s.
const Silence = 8 * time.Second
