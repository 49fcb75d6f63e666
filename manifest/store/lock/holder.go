package lock

import (
	"fmt"
	"strings"

	"github.com/ingotml/ingot/manifest"
)

// BusyError reports that a lock of the store could not be acquired in time. It matches [manifest.ErrBusy].
type BusyError struct {
	Path    string   // the lock file
	Holders []Holder // the known holders; may be empty
}

// Holder is a process that holds the store's lock.
type Holder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

func (h Holder) String() string {
	return fmt.Sprintf("%s (process %d)", manifest.Clip(h.Command), h.PID)
}

func (e *BusyError) Error() string {
	who := "another process"
	if len(e.Holders) > 0 {
		names := make([]string, len(e.Holders))
		for i, h := range e.Holders {
			names[i] = h.String()
		}
		who = strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s is held by %s", e.Path, who)
}

func (e *BusyError) Is(target error) bool { return target == manifest.ErrBusy }
