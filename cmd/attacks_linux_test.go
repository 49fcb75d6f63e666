package cmd_test

import (
	"context"
	"testing"

	"github.com/ingotml/ingot/server/servertest/attacks"
)

// TestMixedAttacks checks that attackers of all kinds end no process and no honest stream, and that memory stays
// bounded. bench/attacks measures how long honest clients wait.
func TestMixedAttacks(t *testing.T) {
	s := startServer(t, nil)
	to := attacks.Target{Address: s.addr, Model: "demo"}
	honest := func(h attacks.Honest) {
		t.Helper()
		if r := h.Run(t.Context(), to); len(r.Failed) > 0 || len(r.First) != h.Clients*h.Each {
			t.Errorf("%d of %d streams are complete; %v", len(r.First), h.Clients*h.Each, r.Failed)
		}
	}
	honest(attacks.Honest{Clients: 1, Each: 1, Tokens: 1})
	kinds, err := attacks.Kinds("")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	attacked := make(chan map[string]int64)
	go func() {
		attacked <- attacks.Run(ctx, to, kinds, 10, attacks.Size{Connections: 300, Parts: 5000, Tokens: 20_000})
	}()
	honest(attacks.Honest{Clients: 20, Each: 2, Tokens: 10})
	end()
	for kind, n := range <-attacked {
		if n == 0 {
			t.Errorf("no attack of the kind %s", kind)
		}
	}
	const most = 1 << 30
	if p := peak(t, s.Process.Pid); p > most {
		t.Errorf("the server needed %d MiB", p>>20)
	}
	honest(attacks.Honest{Clients: 1, Each: 1, Tokens: 5})
	if !running(s.Process.Pid) {
		t.Fatalf("the server has exited: %s", s.errs)
	}
}
