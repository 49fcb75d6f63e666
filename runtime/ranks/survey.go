package ranks

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/machine"
	"github.com/ingotml/ingot/runtime"
)

// Machine is what a rank runs on.
type Machine struct {
	Host   string // equal on ranks of one host
	Memory int64  // bytes that models may use
	Cores  int
}

const mebibyte = 1 << 20

// Survey returns the machines of all ranks of a group, by rank. All ranks must call it, outside Do.
func Survey(ctx context.Context, t *mlx.Thread, g *mlx.Group) (all []Machine, err error) {
	name, failed := os.Hostname()
	own := fnv.New32a()
	fmt.Fprint(own, name)
	host := float32(own.Sum32() >> 8) // exact
	if failed != nil {
		name, host = "unknown", -1-float32(g.Rank())
	}
	err = t.Do(ctx, func() error {
		memory := t.Memory().Budget
		if memory == 0 {
			memory = runtime.MachineMemory()
		}
		numbers := []float32{host, float32(memory / mebibyte), float32(machine.Cores())}
		widths := make([]int, g.Size())
		for i := range widths {
			widths[i] = len(numbers)
		}
		got := g.AllGather(mlx.FromSlice(t, numbers, 1, len(numbers)), widths...).Float32s()
		names := map[float32]string{host: name}
		for rank := range g.Size() {
			n := got[rank*len(numbers):]
			if names[n[0]] == "" {
				names[n[0]] = fmt.Sprintf("the host of rank %d", rank)
			}
			all = append(all, Machine{strings.TrimSpace(names[n[0]]), int64(n[1]) * mebibyte, int(n[2])})
		}
		return nil
	})
	return all, err
}
