package runtime

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// MachineMemory returns the memory that models may use on this machine if the engine has no memory of its own: that of
// the machine or cgroup, less a share for everything else.
func MachineMemory() int64 { return mlx.DefaultBudget(mlx.Info{}) }

// StateBytes returns the size of the state of a sequence with the given number of tokens.
func (p *Processor) StateBytes(tokens int, float32s bool, kv KVType) int64 {
	each := int64(2)
	if float32s {
		each = 4
	}
	fixed := arch.StateElements(p.config, 0)
	n := arch.StateElements(p.config, int64(tokens)) - fixed
	if bits := kv.bits(); bits > 0 {
		return each*fixed + n*(bits+1)/8 // a group's scale and bias take one bit per element
	}
	return each * (fixed + n)
}
