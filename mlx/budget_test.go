package mlx

import (
	"testing"

	"github.com/ingotml/ingot/mlx/machine"
)

func TestDefaultBudget(t *testing.T) {
	all := machine.Memory()
	if got := DefaultBudget(Info{}); got <= 0 || all > 0 && got >= all {
		t.Errorf("budget %d of a machine with %d", got, all)
	}
	gpu := Info{GPU: true, Device: map[string]string{"total_memory": "16000000000"}}
	if got := DefaultBudget(gpu); got <= 8e9 || got >= 16e9 {
		t.Errorf("budget %d of a GPU with 16 GB", got)
	}
}
