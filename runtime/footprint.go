package runtime

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// MachineMemory is what models may take on this machine where no engine tells of other memory: the machine's or the cgroup's, less a
// share for everything else that lives there.
func MachineMemory() int64 { return mlx.DefaultBudget(mlx.Info{}) }

// StateBytes is how much a sequence of so many tokens takes in the model's caches.
func (p *Processor) StateBytes(tokens int, float32s bool) int64 {
	n := 2 * arch.StateElements(p.config, int64(tokens))
	if float32s {
		n *= 2
	}
	return n
}
