package runtime

import (
	"github.com/ingotml/ingot/mlx"
)

// MachineMemory returns the memory that models may use on this machine if the engine has no memory of its own: that of
// the machine or cgroup, less a share for everything else.
func MachineMemory() int64 { return mlx.DefaultBudget(mlx.Info{}) }
