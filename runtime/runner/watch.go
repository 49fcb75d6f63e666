package runner

import (
	"time"

	"github.com/ingotml/ingot/runtime"
)

// startTime is how long a child may take to show its first sign of life: the system may read the program from a slow
// disk.
const startTime = 3 * runtime.Hang

// watch kills a child that shows no sign of life in the time that its last one has told. It counts intervals, of which
// a suspended machine has none.
func (r *Runner) watch(life <-chan int) {
	tick := time.NewTicker(r.tick)
	defer tick.Stop()
	within := int(startTime / lifeInterval)
	for missed := 0; missed < within; {
		select {
		case within = <-life:
			missed = 0
		case <-tick.C:
			missed++
		case <-r.done:
			return
		}
	}
	r.mu.Lock()
	r.hangs = time.Duration(within) * lifeInterval
	r.mu.Unlock()
	_ = r.cmd.Process.Kill()
}
