package cmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/address"
	"github.com/spf13/cobra"
)

func (a *app) serveCmd() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the models of the store over HTTP",
		Long: `Serve the models of the store over HTTP, to clients that speak Ollama's, OpenAI's or Anthropic's API.

Each model is loaded when it is asked for, into a process of its own, stays for a while after the last request, and goes
earlier when another one needs its room. A process that dies takes nothing along but its own requests.

The server listens on 127.0.0.1:11434, or where --host or INGOT_HOST says. What other machines reach has to have a key
(--api-key-file), or --insecure-listen says that everybody may ask. Ctrl-C or SIGTERM lets running requests end first.`,
		Example: `  ingot serve
  ingot serve --host 0.0.0.0 --api-key-file key
  INGOT_HOST=127.0.0.1:8080 ingot serve --keep-alive 1h`,
		Args: between(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return a.serve(c, o) },
	}
	f := c.Flags()
	f.StringVar(&o.host, "host", "", "`address` to listen on, [host][:port] (default 127.0.0.1:11434, or $"+address.Env+")")
	f.StringVar(&o.apiKey, "api-key", "", "key that every request has to bring; other users see it, prefer --api-key-file")
	o.keyFile.add(c, "key that every request has to bring")
	f.BoolVar(&o.insecure, "insecure-listen", false, "let other machines ask without a key")
	f.StringArrayVar(&o.hosts, "allow-host", nil, "further `name` that requests may call the server by (repeatable)")
	f.StringArrayVar(&o.origins, "allow-origin", nil, "further `origin` whose pages may ask, such as https://chat.example; * for any (repeatable)")
	o.registryFlags.add(c)
	f.IntVar(&o.models, "models", 0, "most models that are loaded (default as many as memory holds)")
	f.StringVar(&o.memory, "memory", "", "`bytes` that all models may take, such as 16GB (default what the machine has)")
	f.StringVar(&o.keepAlive, "keep-alive", "5m", "`time` that an idle model stays; 0 not at all, negative until its room is needed")
	f.IntVar(&o.context, "context", 0, "tokens of state that a model has room for (default by the memory that there is)")
	f.StringVar(&o.cacheSize, "cache-size", "", "`bytes` of state that a model keeps of past requests, 0 none (default by the memory that there is)")
	f.StringVar(&o.cacheDir, "cache-dir", "", "folder for state that has no room in memory, also for later runs (default none)")
	f.StringVar(&o.cacheDisk, "cache-disk", "", "most `bytes` in that folder (default 16GB)")
	f.IntVar(&o.parallel, "parallel", 0, "requests that a model runs at once (default 32)")
	f.IntVar(&o.queue, "queue", 0, "requests that wait for a model beside them; more are refused (default 512)")
	f.StringVar(&o.draft, "draft", "auto", "tokens to draft in each step, where a request does not say: a number, auto or off, which loads no draft")
	f.DurationVar(&o.grace, "grace", 10*time.Second, "`time` that running requests have to end when the server stops")
	f.BoolVar(&o.float32, "float32", false, "compute in float32")
	o.kv.add(c)
	o.cpu.add(c)
	return c
}

type serveOptions struct {
	host, apiKey   string
	keyFile        keyFlag
	insecure       bool
	hosts, origins []string
	registryFlags
	models, context int
	memory          string
	keepAlive       string
	cacheSize       string
	cacheDir        string
	cacheDisk       string
	parallel, queue int
	draft           string
	grace           time.Duration
	float32         bool
	kv              kvFlag
	cpu             cpuFlags
}

func (a *app) serve(c *cobra.Command, o serveOptions) error {
	ctx := c.Context()
	at, warning := address.FromEnv(o.host)
	if warning != "" {
		return usagef("address %s", warning)
	}
	if at.Scheme != "http" || at.Path != "" {
		return usagef("the server speaks http, at no path below /")
	}
	switch {
	case o.apiKey != "" && o.keyFile.file != "":
		return usagef("--api-key and --api-key-file exclude each other")
	case o.apiKey == "":
		var err error
		if o.apiKey, err = o.keyFile.read(a); err != nil {
			return err
		}
	}
	if !at.Loopback() && o.apiKey == "" && !o.insecure {
		return usagef("other machines may reach %s: give --api-key-file FILE, or --insecure-listen to let everybody ask", at.Listen())
	}
	opts, err := o.server(at)
	if err != nil {
		return err
	}
	if opts.Store, err = a.openStore(); err != nil {
		return err
	}
	if _, err := opts.Store.Secret(ctx); err != nil {
		a.note("note: `ingot run`, `ps`, `stop` and `launch` cannot tell that this server is yours: %v", err)
	}
	if opts.Clock, err = clock(""); err != nil {
		return err
	}
	if opts.Load, err = a.loader(o); err != nil {
		return err
	}
	opts.Log = a.note
	listener, err := net.Listen("tcp", at.Listen())
	if err != nil {
		return listenError(ctx, at, err)
	}
	defer listener.Close()
	if _, err := a.needEngine(ctx); err != nil { // models' processes would find out one by one
		return err
	}
	s := server.New(opts)
	defer s.Close()
	at.Port = listener.Addr().(*net.TCPAddr).Port // 0 has become one that was free
	a.note("listening on %s", at.URL())
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	a.note("stopping")
	last, cancel := context.WithTimeout(context.Background(), o.grace)
	defer cancel()
	s.Shutdown(last)
	return nil
}

// server are the options of the library.
func (o serveOptions) server(at address.Address) (server.Options, error) {
	s := server.Options{
		Version: Version, Models: o.models, Context: o.context, CacheSize: -1, Float32: o.float32,
		Host: at.Host, APIKey: o.apiKey, Hosts: o.hosts, Origins: o.origins,
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"models", o.models}, {"context", o.context}, {"parallel", o.parallel}, {"queue", o.queue}} {
		if n.value < 0 {
			return s, usagef("--%s is %d", n.flag, n.value)
		}
	}
	var err error
	if s.InsecureRegistries, s.PrivateRegistries, err = o.registries(); err != nil {
		return s, err
	}
	if s.Draft, err = runtime.ParseDraft(o.draft); err != nil {
		return s, usagef("--draft: %v", err)
	}
	if s.KV, err = o.kv.value(); err != nil {
		return s, err
	}
	if s.KeepAlive, err = server.ParseKeepAlive(o.keepAlive); err != nil {
		return s, usagef("--keep-alive: %v", err)
	}
	for _, b := range []struct {
		flag, text string
		to         *int64
	}{{"memory", o.memory, &s.Memory}, {"cache-size", o.cacheSize, &s.CacheSize}} {
		if b.text == "" {
			continue
		}
		if b.text == "0" {
			*b.to = 0
			continue
		}
		if *b.to, err = parseSize(b.text); err != nil {
			return s, usagef("--%s: %v", b.flag, err)
		}
	}
	_, err = o.runnerFlags()
	return s, err
}

// runnerFlags are those that every model's process gets.
func (o serveOptions) runnerFlags() ([]string, error) {
	cpu, err := o.cpu.options()
	if err != nil {
		return nil, err
	}
	math := "exact"
	if cpu.Fast {
		math = "fast"
	}
	args := []string{"--cpu-math", math}
	add := func(flag, value string, given bool) {
		if given {
			args = append(args, "--"+flag, value)
		}
	}
	add("threads", strconv.Itoa(cpu.Threads), cpu.Threads > 0)
	cacheDir := o.cacheDir
	if cacheDir != "" { // a model's process runs in another folder
		if cacheDir, err = filepath.Abs(cacheDir); err != nil {
			return nil, fmt.Errorf("--cache-dir: %w", err)
		}
	}
	add("cache-dir", cacheDir, cacheDir != "")
	if o.cacheDisk != "" {
		n, err := parseSize(o.cacheDisk)
		if err != nil {
			return nil, usagef("--cache-disk: %v", err)
		}
		add("cache-disk", strconv.FormatInt(n, 10), true)
	}
	add("draft", o.draft, o.draft != "auto")
	add("parallel", strconv.Itoa(o.parallel), o.parallel > 0)
	add("queue", strconv.Itoa(o.queue), o.queue > 0)
	kv, err := o.kv.value()
	if err != nil {
		return nil, err
	}
	add("kv-type", string(kv), kv != runtime.KVPlain)
	if o.float32 {
		args = append(args, "--float32")
	}
	return args, nil
}

// loader starts a child of this program for each model.
func (a *app) loader(o serveOptions) (func(context.Context, server.Child, func(float64)) (pool.Model, error), error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which models run in: %w", err)
	}
	flags, err := o.runnerFlags()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, child server.Child, loaded func(float64)) (pool.Model, error) {
		command := append([]string{program, "runner", child.Name,
			"--cache-size", strconv.FormatInt(child.PrefixCache, 10), "--memory", strconv.FormatInt(child.Memory, 10)}, flags...)
		model, err := runner.Start(ctx, runner.Options{Command: command, Env: childEnviron(), Loaded: loaded, Stderr: a.childErr()})
		if err != nil {
			return nil, err // a nil of its type is no nil of the interface
		}
		return model, nil
	}, nil
}

// childErr gets what a model's process says.
func (a *app) childErr() io.Writer {
	if a.quiet {
		return nil
	}
	return a.err
}
