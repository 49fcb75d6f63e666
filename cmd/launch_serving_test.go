package cmd_test

import (
	"context"
	"errors"
	"net"

	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/all"
	"github.com/rogpeppe/go-internal/testscript"
)

// serving starts a server of the store at INGOT_HOST that cannot load models: serving [STORE] [KEY].
func serving(ts *testscript.TestScript, _ bool, args []string) {
	home, key := ts.Getenv("INGOT_HOME"), ""
	if len(args) > 0 {
		home = ts.MkAbs(args[0])
	}
	if len(args) > 1 {
		key = args[1]
	}
	addr, stop, err := modelServer(home, key)
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv("INGOT_HOST", addr)
}

func modelServer(home, key string) (addr string, stop func(), err error) {
	store, err := store.Open(home)
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := all.New(server.Options{Version: "1.2.3", Store: store, APIKey: key,
		Load: func(context.Context, server.Child, func(float64)) (pool.Model, error) {
			return nil, errors.New("no model can be loaded here")
		}})
	go func() { _ = s.Serve(l) }()
	return l.Addr().String(), s.Close, nil
}
