package runtime

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// MachineMemory is what models may take on this machine where no engine tells of other memory: the machine's or the cgroup's, less a
// share for everything else that lives there.
func MachineMemory() int64 { return mlx.DefaultBudget(mlx.Info{}) }

// StateBytes is how much a sequence of so many tokens takes in the model's caches.
func (p *Processor) StateBytes(tokens int, float32s bool, kv KVType) int64 {
	each := int64(2)
	if float32s {
		each = 4
	}
	fixed := arch.StateElements(p.config, 0)
	n := arch.StateElements(p.config, int64(tokens)) - fixed
	if bits := kv.bits(); bits > 0 {
		return each*fixed + n*(bits+1)/8 // a group's scale and bias are a bit for each element
	}
	return each * (fixed + n)
}
