package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/ingotml/ingot/server/servertest/attacks"
)

// orders are what the attackers' process gets.
type orders struct {
	To        attacks.Target
	Kinds     []string
	Attackers int
}

// attack starts attackers in a process of their own, so that they do not slow the honest clients down themselves. end
// ends them, and returns how often they attacked.
func (b *bench) attack(ctx context.Context, to attacks.Target) (end func() (map[string]int64, error), err error) {
	text, err := json.Marshal(orders{to, b.kinds, b.attackers})
	if err != nil {
		return nil, err
	}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, own, "-target", string(text))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() (counts map[string]int64, err error) {
		in.Close()
		if err := json.NewDecoder(out).Decode(&counts); err != nil {
			return nil, fmt.Errorf("the attackers: %w", err)
		}
		return counts, c.Wait()
	}, nil
}

// beAttackers attacks until standard input ends, and prints how often.
func beAttackers(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return json.NewEncoder(os.Stdout).Encode(attacks.Run(ctx, o.To, o.Kinds, o.Attackers, attacks.Full))
}
