package runtime

import (
	"github.com/ingotml/ingot/mlx"
)

// MachineMemory returns the memory that models may use on this machine if the engine has no memory of its own: that of
// the machine or cgroup, less a share for everything else.
func MachineMemory() int64 { return mlx.DefaultBudget(mlx.Info{}) }

// UsableMemory returns the memory that models may use on a machine with the given memory.
func UsableMemory(whole int64) int64 { return mlx.BudgetOf(whole) }
