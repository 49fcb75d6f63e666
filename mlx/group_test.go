package mlx_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// groupValues checks every operation of a group.
func groupValues(e *mlx.Thread, g *mlx.Group) error {
	rank, size := g.Rank(), g.Size()
	row := func(n int, f func(i int) float32) *mlx.Array {
		list := make([]float32, n)
		for i := range list {
			list[i] = f(i)
		}
		return mlx.FromSlice(e, list, 1, n)
	}
	same := func(what string, got *mlx.Array, want func(i int) float32) error {
		for i, v := range got.Float32s() {
			if v != want(i) {
				return fmt.Errorf("%s: element %d is %v, want %v", what, i, v, want(i))
			}
		}
		return nil
	}
	sum := g.AllSum(row(2000, func(i int) float32 { return float32(i * (rank + 1)) }), mlx.Float32)
	if err := same("sum", sum, func(i int) float32 { return float32(i * size * (size + 1) / 2) }); err != nil {
		return err
	}
	// Many numbers pass in parts. Sums that are rounded are those in float32, rounded.
	sums := func(i int) float32 { return float32(i%70_000) * float32(size*(size+1)/2) }
	for _, n := range []int{5000, 600_001} {
		mine := row(n, func(i int) float32 { return float32(i%70_000) * float32(rank+1) })
		if err := same("long sum", g.AllSum(mine, mlx.Float32), sums); err != nil {
			return err
		}
		for _, d := range []mlx.DType{mlx.BFloat16, mlx.Float16} {
			want := mlx.AsType(mlx.AsType(row(n, sums), d), mlx.Float32).Float32s()
			got := mlx.AsType(g.AllSum(mine, d), mlx.Float32)
			if err := same(fmt.Sprint("sum in ", d), got, func(i int) float32 { return want[i] }); err != nil {
				return err
			}
		}
	}
	for root := range size {
		all := g.Broadcast(row(5, func(i int) float32 { return float32(i - 10*rank) }), root)
		if err := same("broadcast", all, func(i int) float32 { return float32(i - 10*root) }); err != nil {
			return err
		}
	}
	// Each rank has two rows with one element more than the rank before.
	widths, total := make([]int, size), 0
	for r := range widths {
		widths[r] = r + 1
		total += r + 1
	}
	own := make([]float32, 2*(rank+1))
	for i := range own {
		own[i] = float32(100*(i/(rank+1)) + 10*rank + i%(rank+1))
	}
	all := g.AllGather(mlx.FromSlice(e, own, 2, rank+1), widths...)
	if !slices.Equal(all.Shape(), []int{2, total}) {
		return fmt.Errorf("gathered %v", all)
	}
	var want []float32
	for row := range 2 {
		for r := range size {
			for i := range r + 1 {
				want = append(want, float32(100*row+10*r+i))
			}
		}
	}
	if err := same("gather", all, func(i int) float32 { return want[i] }); err != nil {
		return err
	}
	// A value goes around.
	next, before := (rank+1)%size, (rank+size-1)%size
	send := func() { mlx.Eval(g.Send(row(3, func(i int) float32 { return float32(rank + i) }), next)) }
	if rank == 0 {
		send()
	}
	got := g.Receive(before, mlx.Float32, 1, 3)
	if err := same("receive", got, func(i int) float32 { return float32(before + i) }); err != nil {
		return err
	}
	if rank != 0 {
		send()
	}
	mlx.Eval(g.AllSum(mlx.Zeros(e, mlx.Float32, 1), mlx.Float32)) // nobody leaves before
	return nil
}

func TestLocalGroup(t *testing.T) {
	for _, size := range []int{1, 2, 4} {
		mlxtest.Ranks(t, size, func(e *mlx.Thread, g *mlx.Group) error {
			if size == 1 {
				mlx.Eval(g.AllSum(mlx.Zeros(e, mlx.Float32, 3), mlx.Float32))
				return nil
			}
			return groupValues(e, g)
		})
	}
}

// Operations of a group are replayed from tapes.
func TestGroupOnTape(t *testing.T) {
	mlxtest.Ranks(t, 2, func(e *mlx.Thread, g *mlx.Group) error {
		in := mlx.FromSlice(e, []int32{1, 2, 3})
		x := mlx.SiLU(mlx.AsType(mlx.TableRows(mlx.FromSlice(e, []float32{0, 10, 20, 30, 40}, 5, 1), in, 1), mlx.Float32))
		out := g.AllGather(g.AllSum(x, mlx.Float32), 1, 1)
		tape := mlx.Record(out, in)
		if tape == nil {
			return fmt.Errorf("rank %d: not recorded", g.Rank())
		}
		defer tape.Free()
		first, again := out.Float32s(), tape.Play([]int32{3, 3, 0}).Float32s()
		if want := []float32{first[4], first[4], first[4], first[4], 0, 0}; !slices.Equal(again, want) {
			return fmt.Errorf("rank %d: replayed %v, want %v", g.Rank(), again, want)
		}
		return nil
	})
}

// Whatever goes wrong in a group ends it for all ranks, with an error.
func TestGroupFailures(t *testing.T) {
	sum := func(e *mlx.Thread, g *mlx.Group, n int) {
		mlx.Eval(g.AllSum(mlx.Zeros(e, mlx.Float32, n), mlx.Float32))
	}
	for name, c := range map[string]struct {
		fn   func(e *mlx.Thread, g *mlx.Group) error
		want []string
	}{
		"a rank that hangs": {func(e *mlx.Thread, g *mlx.Group) error {
			if g.Rank() == 1 {
				time.Sleep(300 * time.Millisecond)
			}
			sum(e, g, 3)
			return nil
		}, []string{"rank 0: mlx: Eval: the group has ended: no progress in all_sum for 100 ms", "rank 1: mlx: Eval"}},
		"a rank that leaves": {func(e *mlx.Thread, g *mlx.Group) error {
			if g.Rank() == 0 {
				sum(e, g, 3)
			}
			return nil
		}, []string{"rank 0: mlx: Eval: the group has ended: rank 1 left the group"}},
		"different sizes": {func(e *mlx.Thread, g *mlx.Group) error {
			sum(e, g, 3+g.Rank())
			return nil
		}, []string{"ranks disagree", "all_sum with 12", "all_sum with 16"}},
		"different operations": {func(e *mlx.Thread, g *mlx.Group) error {
			if g.Rank() == 0 {
				sum(e, g, 2)
			} else {
				mlx.Eval(g.AllGather(mlx.Zeros(e, mlx.Float32, 2), 2, 2))
			}
			return nil
		}, []string{"ranks disagree", "all_sum", "all_gather"}},
		"a message of another size": {func(e *mlx.Thread, g *mlx.Group) error {
			if g.Rank() == 0 {
				mlx.Eval(g.Send(mlx.Zeros(e, mlx.Float32, 2), 1))
			} else {
				mlx.Eval(g.Receive(0, mlx.Float32, 3))
			}
			return nil
		}, []string{"ranks disagree: rank 0 sends 8 bytes, rank 1 wants 12"}},
		"bfloat16": {func(e *mlx.Thread, g *mlx.Group) error {
			g.AllSum(mlx.Zeros(e, mlx.BFloat16, 2), mlx.BFloat16)
			return nil
		}, []string{"adds float32"}},
		"a sum of integers": {func(e *mlx.Thread, g *mlx.Group) error {
			g.AllSum(mlx.Zeros(e, mlx.Float32, 2), mlx.Int32)
			return nil
		}, []string{"rounds to float32"}},
		"no such rank": {func(e *mlx.Thread, g *mlx.Group) error {
			g.Receive(2, mlx.Int32, 1)
			return nil
		}, []string{"with rank 2"}},
		"an empty message": {func(e *mlx.Thread, g *mlx.Group) error {
			g.Receive(1-g.Rank(), mlx.Int32, 0)
			return nil
		}, []string{"an axis of 0"}},
		"wrong widths": {func(e *mlx.Thread, g *mlx.Group) error {
			g.AllGather(mlx.Zeros(e, mlx.Int8, 2), 2)
			return nil
		}, []string{"does not fit the widths"}},
		"a wrong root": {func(e *mlx.Thread, g *mlx.Group) error {
			g.Broadcast(mlx.Zeros(e, mlx.Float32, 2), 2)
			return nil
		}, []string{"broadcast from rank 2 of 2"}},
		"a closed group": {func(e *mlx.Thread, g *mlx.Group) error {
			g.Close()
			sum(e, g, 1)
			return nil
		}, []string{"there is no group"}},
		"a taken rank":    {taken, []string{"rank 0 is taken"}},
		"another size":    {otherSize, []string{"has 2 ranks, not 3"}},
		"a rank too high": {tooHigh, []string{"rank 5 of 2 ranks"}},
	} {
		err := mlxtest.TryRanks(t, 2, 100*time.Millisecond, c.fn)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error %q lacks %q", name, err, want)
			}
		}
	}
}

func join(e *mlx.Thread, name string, rank, size int) error {
	g, err := e.Join(mlx.GroupOptions{Backend: mlx.LocalBackend, Name: name, Rank: rank, Size: size})
	if err == nil {
		g.Close()
	}
	return err
}

func taken(e *mlx.Thread, g *mlx.Group) error {
	name := fmt.Sprint("taken ", g.Rank())
	first, err := e.Join(mlx.GroupOptions{Backend: mlx.LocalBackend, Name: name, Size: 2})
	if err != nil {
		return err
	}
	defer first.Close()
	return join(e, name, 0, 2)
}

func otherSize(e *mlx.Thread, g *mlx.Group) error {
	name := fmt.Sprint("sized ", g.Rank())
	first, err := e.Join(mlx.GroupOptions{Backend: mlx.LocalBackend, Name: name, Size: 2})
	if err != nil {
		return err
	}
	defer first.Close()
	return join(e, name, 1, 3)
}

func tooHigh(e *mlx.Thread, _ *mlx.Group) error { return join(e, "too high", 5, 2) }

func TestUnknownBackend(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		_, err := e.Join(mlx.GroupOptions{Backend: "pigeon"})
		if err == nil || !strings.Contains(err.Error(), "pigeon") {
			t.Error(err)
		}
	})
}

const ringRole = "INGOT_TEST_RING_ROLE"

// TestRing runs the TCP ring of the engine between processes: this test's program with a role.
func TestRing(t *testing.T) {
	switch os.Getenv(ringRole) {
	case "values", "lonely":
		ringRank(t, os.Getenv(ringRole) == "lonely")
		return
	}
	mlxtest.Open(t) // skips the test if there is no engine
	t.Run("values", func(t *testing.T) {
		for rank, run := range ring(t, "values") {
			if out, err := run.output(); err != nil {
				t.Errorf("rank %d: %v\n%s", rank, err, out)
			}
		}
	})
	t.Run("killed", func(t *testing.T) {
		ranks := ring(t, "lonely")
		if out, err := ranks[1].output(); err != nil { // leaves after the first sum
			t.Errorf("rank 1: %v\n%s", err, out)
		}
		begin := time.Now()
		out, err := ranks[0].output()
		if err != nil || !strings.Contains(out, "FAILED") {
			t.Errorf("rank 0: %v\n%s", err, out)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("rank 0 took %v", took)
		}
	})
}

type process struct {
	*exec.Cmd
	text *strings.Builder
}

func (p process) output() (string, error) {
	err := p.Wait()
	return p.text.String(), err
}

// ring starts two ranks.
func ring(t *testing.T, role string) (ranks [2]process) {
	t.Helper()
	var hosts []string
	for range ranks {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, fmt.Sprintf("[%q]", l.Addr()))
		l.Close()
	}
	file := filepath.Join(t.TempDir(), "hosts.json")
	if err := os.WriteFile(file, []byte("["+strings.Join(hosts, ",")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for rank := range ranks {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRing$", "-test.v")
		c.Env = append(os.Environ(), ringRole+"="+role, "MLX_HOSTFILE="+file, fmt.Sprint("MLX_RANK=", rank))
		text := &strings.Builder{}
		c.Stdout, c.Stderr = text, text
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ranks[rank] = process{c, text}
	}
	return ranks
}

// ringRank is a rank. If it is lonely rank 1 leaves after the first sum, and rank 0 must notice.
func ringRank(t *testing.T, lonely bool) {
	t.Helper()
	e := mlxtest.Open(t)
	err := e.Do(t.Context(), func() error {
		g, err := e.Join(mlx.GroupOptions{Backend: "ring", Limit: 10 * time.Second})
		if err != nil {
			return err
		}
		if err := groupValues(e, g); err != nil || !lonely {
			return err
		}
		if g.Rank() == 1 {
			os.Exit(0)
		}
		begin := time.Now()
		err = e.Within(func() error { mlx.Eval(g.AllSum(mlx.Zeros(e, mlx.Float32, 1000), mlx.Float32)); return nil })
		fmt.Println("FAILED", err != nil, err, time.Since(begin))
		sum := func() error { mlx.Eval(g.AllSum(mlx.Zeros(e, mlx.Float32, 1), mlx.Float32)); return nil }
		if again := e.Within(sum); again == nil {
			return fmt.Errorf("an operation of a broken group succeeded")
		}
		fmt.Println("after", time.Since(begin))
		os.Exit(0) // the thread of the ring may still wait
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
