package serve

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/mlx/machine"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/worker"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/spf13/cobra"
)

func workerCommand(a *cli.App) *cobra.Command {
	var listen string
	var token tokenFlag
	var cpu engines.CPUFlags
	c := &cobra.Command{
		Use:   "worker",
		Short: "Compute a part of the models of a server on another machine",
		Long: `Compute a part of the models of a server on another machine, which is started with "serve --workers".

The two machines prove to each other that they have the token, and encrypt everything between them. Who
has the token may run models here. A worker fetches its parts of a model from the server, unless its own
store has the model, and keeps them in the folder shards of its store.

The first line of --token-file is the token: at least 32 random characters, the same on all machines.`,
		Example: `  openssl rand -hex 32 > token
  ingot worker --token-file token
  ingot worker --listen 10.0.0.2:7710 --token-file token`,
		Args: cli.Between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return work(c.Context(), a, listen, token, cpu) },
	}
	c.Flags().StringVar(&listen, "listen", ":"+workerPort, "listen `address`")
	token.add(c)
	cpu.Add(c)
	return c
}

// work runs a worker until ctx ends.
func work(ctx context.Context, a *cli.App, listen string, token tokenFlag, cpu engines.CPUFlags) error {
	secret, err := token.read()
	if err != nil {
		return err
	}
	cli.NoteMode(a, token.file)
	if _, err := cpu.Options(); err != nil {
		return err
	}
	st, err := a.OpenStore()
	if err != nil {
		return err
	}
	folder, err := shards.Open(st)
	if err != nil {
		return err
	}
	release, err := folder.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	e, err := engines.Need(ctx, a)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's executable to run models: %w", err)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	self := tunnelSelf(secret, e)
	a.Note("listening on %s", l.Addr())
	return worker.Serve(ctx, l, worker.ServeOptions{
		Self: self, Folder: folder, Log: a.Note,
		About: worker.About{
			Host: host, Memory: runtime.MachineMemory(), Cores: machine.Cores(), Program: self.Versions.Program,
			Engine: self.Versions.Engine,
		},
		Command: func(r worker.Rank) *child.Cmd {
			args := []string{"follow", string(r.Image), "--store", r.Shard.Store.Root(), "--ring", formatRing(r.Ring)}
			if cpu.Threads > 0 {
				args = append(args, "--threads", strconv.Itoa(cpu.Threads))
			}
			c := child.Command(context.Background(), child.Environment(child.Model), program, args...)
			c.Stderr = a.ChildErr()
			return c
		},
	})
}

// formatRing and parseRing write and read a ring as an argument of a process.
func formatRing(r worker.Ring) string {
	return fmt.Sprintf("%d,%d,%d,%d", r.Rank, r.Size, r.Own, r.Next)
}

func parseRing(text string) (r worker.Ring, err error) {
	numbers := []*int{&r.Rank, &r.Size, &r.Own, &r.Next}
	parts := strings.Split(text, ",")
	if len(parts) != len(numbers) {
		return r, cli.Usagef("--ring %q: want %d numbers", text, len(numbers))
	}
	for i, p := range parts {
		if *numbers[i], err = strconv.Atoi(p); err != nil {
			return r, cli.Usagef("--ring %q: %v", text, err)
		}
	}
	return r, nil
}
