package serve

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/processor"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/worker"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
)

// followCommand is a worker's process for a rank. Rank 0's commands come over standard input; see package ranks.
func followCommand(a *cli.App) *cobra.Command {
	var root, ring string
	var cpu engines.CPUFlags
	c := &cobra.Command{
		Use:    "follow DIGEST",
		Short:  "Run a rank of a model for a worker over stdin and stdout",
		Args:   cli.Between(1, 1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			r, err := parseRing(ring)
			if err != nil {
				return err
			}
			out, err := runner.Stdout()
			if err != nil {
				return err
			}
			f := follower{app: a, image: digest.Digest(args[0]), root: root, ring: r, cpu: cpu}
			return overStdio(a.In, out, func(conn net.Conn) error {
				return ranks.Follow(c.Context(), conn, programVersion(), f.open)
			})
		},
	}
	c.Flags().StringVar(&root, "store", "", "folder of the store with the rank's part of the model")
	c.Flags().StringVar(&ring, "ring", "", "rank, number of ranks, own port and next rank's port")
	cpu.Add(c)
	return c
}

// overStdio calls follow with a connection whose bytes are those of in and out. A pipe has no deadlines.
func overStdio(in io.Reader, out io.WriteCloser, follow func(net.Conn) error) error {
	own, other := net.Pipe()
	sent := make(chan struct{})
	go func() {
		_, _ = io.Copy(other, in)
		other.Close()
	}()
	go func() {
		defer close(sent)
		_, _ = io.Copy(out, other)
		out.Close()
	}()
	err := follow(own)
	own.Close()
	<-sent // with the reason
	return err
}

// follower is the process of a rank.
type follower struct {
	app   *cli.App
	image digest.Digest
	root  string
	ring  worker.Ring
	cpu   engines.CPUFlags
}

// open joins the group and loads the rank's part of the model.
func (f follower) open(ctx context.Context, s ranks.Start) (*load.Model, error) {
	if s.Image != f.image || s.Rank != f.ring.Rank || s.Size != f.ring.Size {
		return nil, fmt.Errorf("rank 0 runs %s on rank %d of %d, this process has %s for rank %d of %d",
			s.Image, s.Rank, s.Size, f.image, f.ring.Rank, f.ring.Size)
	}
	st, err := store.OpenExisting(f.root)
	if err != nil {
		return nil, err
	}
	image, whole := shards.Has(st, f.image)
	if !whole {
		return nil, fmt.Errorf("the store %s lacks blobs of %s", f.root, s.Name)
	}
	f.cpu.Math = "exact"
	if s.Options.FastMath {
		f.cpu.Math = "fast"
	}
	thread, err := engines.Open(ctx, f.app, f.cpu)
	if err != nil {
		return nil, err
	}
	group, err := joinRing(ctx, thread, f.ring, s.Options.Stages)
	if err != nil {
		return nil, err
	}
	files := processor.Files{Store: st, Image: image}
	return load.OpenRank(ctx, thread, group, files, files.Processor, s.Options.Load())
}

// joinRing joins the engine's ring. The engine reads the environment, and a file that a pipe stands for: nothing is
// left behind if the process is killed.
func joinRing(ctx context.Context, t *mlx.Thread, r worker.Ring, stages []int) (group *mlx.Group, err error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if _, err := out.Write(r.Hosts()); err != nil {
		return nil, err
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"MLX_RANK": strconv.Itoa(r.Rank), "MLX_HOSTFILE": fmt.Sprintf("/dev/fd/%d", in.Fd()),
	} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	err = t.Do(ctx, func() (err error) {
		group, err = t.Join(mlx.GroupOptions{Backend: "ring", Limit: ranks.GroupLimit(stages)})
		return err
	})
	return group, err
}
