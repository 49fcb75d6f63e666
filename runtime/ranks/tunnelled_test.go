package ranks_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/worker"
	"github.com/ingotml/ingot/worker/shards"
	"github.com/ingotml/ingot/worker/tunnel"
)

// program returns the path of this test's program, which is also the process of a rank and of a worker.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// startTunnelled starts workers, which start all ranks but the first, and fetch their parts from it.
func startTunnelled(t *testing.T, m machines, j job, size int) *processes {
	t.Helper()
	p := newProcesses(j)
	j.Backend = "ring"
	leader := j
	for rank := 1; rank < size; rank++ {
		leader.Workers = append(leader.Workers, startWorker(t, m, rank, p.log, j))
	}
	c := m.command(0, program(t))
	c.Env = leader.environ()
	p.begin(t, c)
	return p
}

// startWorker starts a worker with an empty store and returns its address.
func startWorker(t *testing.T, m machines, rank int, log *lockedBuffer, j job) string {
	t.Helper()
	j.Store, j.Listen = t.TempDir(), m.address(rank)+":0"
	c := m.command(rank, program(t))
	c.Env, c.Stderr = j.environ(), log
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("the worker of rank %d: %v\n%s", rank, err, log)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the worker of rank %d: %v\n%s", rank, err, log)
	}
	return strings.TrimSpace(address)
}

func tunnelSelf() (tunnel.Self, error) {
	token, err := tunnel.NewToken(strings.Repeat("t", tunnel.MinToken))
	return tunnel.Self{Token: token, Versions: tunnel.Versions{Program: "1", Engine: "2"}}, err
}

func logLine(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// work runs a worker until the input ends.
func (j job) work() error {
	self, err := tunnelSelf()
	if err != nil {
		return err
	}
	own, err := store.Open(j.Store)
	if err != nil {
		return err
	}
	folder, err := shards.Open(own)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", j.Listen)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return worker.Serve(ctx, l, worker.ServeOptions{
		Self: self, Folder: folder, About: worker.About{Host: "a"}, Log: logLine,
		Command: func(r worker.Rank) *child.Cmd {
			rank := j
			rank.Listen, rank.Ring, rank.Store = "", &r.Ring, r.Shard.Store.Root()
			c := child.Command(context.Background(), rank.environ(), os.Args[0])
			c.Stderr = os.Stderr
			return c
		},
	})
}

// form forms a group with the workers and runs its rank 0.
func (j job) form(ctx context.Context) (err error) {
	o := worker.FormOptions{Workers: j.Workers, Name: "demo", Image: j.Image, Stages: j.Stages, Log: logLine}
	if o.Self, err = tunnelSelf(); err != nil {
		return err
	}
	if o.Store, err = store.OpenExisting(j.Store); err != nil {
		return err
	}
	g, err := worker.Form(ctx, o)
	if err != nil {
		return err
	}
	j.Ring = &g.Ring
	err = j.run(ctx)
	for _, c := range g.Conns {
		err = errors.Join(err, c.Close())
	}
	g.Close()
	return err
}
