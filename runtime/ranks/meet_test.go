package ranks_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime/ranks"
)

// The ranks of a group meet, and their connections lead where they should.
func TestMeet(t *testing.T) {
	const size = 3
	var all sync.WaitGroup
	all.Add(size) // no rank leaves the group before the others have met
	err := mlxtest.EachRank(t, size, time.Minute, func(e *mlx.Thread, g *mlx.Group) error {
		conns, err := ranks.Meet(context.Background(), e, g, "")
		all.Done()
		all.Wait()
		if err != nil {
			return err
		}
		defer func() {
			for _, c := range conns {
				c.Close()
			}
		}()
		if at := conns[0].LocalAddr().(*net.TCPAddr); !at.IP.IsLoopback() {
			return fmt.Errorf("ranks of one host meet at %v", at)
		}
		if g.Rank() > 0 {
			_, err := conns[0].Write([]byte{byte(g.Rank())})
			return err
		}
		for i, c := range conns {
			var b [1]byte
			if _, err := c.Read(b[:]); err != nil || int(b[0]) != i+1 {
				return fmt.Errorf("connection %d is of rank %d, %v", i, b[0], err)
			}
		}
		if len(conns) != size-1 {
			return fmt.Errorf("%d connections", len(conns))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
