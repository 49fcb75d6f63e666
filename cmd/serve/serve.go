package serve

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/cmd/cli/engines"
	"github.com/ingotml/ingot/cmd/cli/models"
	"github.com/ingotml/ingot/cmd/cli/transfer"
	"github.com/ingotml/ingot/internal/child"
	"github.com/ingotml/ingot/internal/limits/bytesize"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/ranks"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/all"
	"github.com/ingotml/ingot/server/params"
	"github.com/spf13/cobra"
)

func serveCommand(a *cli.App) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve [NAME]...",
		Short: "Serve the models of the store over HTTP",
		Long: `Serve the models of the store over HTTP, with Ollama's, OpenAI's and Anthropic's APIs.

The server loads a model on the first request for it, into its own process. It unloads a model that has
been idle for --keep-alive, or earlier if another model needs the memory. If a model's process crashes,
only its own requests fail.

The server listens on 127.0.0.1:11434, or on --host or INGOT_HOST. An address that other machines can reach
requires an API key (--api-key-file) or --insecure-listen, which lets everybody send requests. A line of that
file is [NAME] KEY [requests=N] [tokens_per_minute=N] [metrics=1]. The prompts of a key do not speed up those of
another one unless --share-cache is given. With --tls-cert and --tls-key the server uses TLS. It reads these
files again when they change. On Ctrl-C or SIGTERM the server finishes running requests first.

With --distributed, the processes that mlx.launch, mpirun or srun start serve one NAME together, each with a
part of its weights. Rank 0 listens, the others follow. With --workers, the machines on which "worker" runs
and this one share each model. Each has a part of every tensor or, with --parallel pipeline, some of the
layers; auto chooses. --dry-run prints the shares.

With NAMEs, serve first imports or pulls those that the store lacks: hf.co/ORG/REPO[@REVISION], or names
with a registry. It asks first on a terminal; --yes agrees.

--allow-host, --allow-origin, --insecure-registry and --private-registry can be repeated.`,
		Example: `  ingot serve
  ingot serve hf.co/Qwen/Qwen3-0.6B --yes
  ingot serve --host 0.0.0.0 --api-key-file key
  INGOT_HOST=127.0.0.1:8080 ingot serve --keep-alive 1h
  mpirun -n 2 ingot serve qwen3:32b --distributed`,
		Args: cli.Between(0, -1),
		RunE: func(c *cobra.Command, args []string) error { return serve(a, c, args, o) },
	}
	f := c.Flags()
	o.accessFlags.add(c)
	o.registryFlags.add(c)
	f.IntVar(&o.models, "models", 0, "maximum number of loaded models (default by memory)")
	f.StringVar(&o.memory, "memory", "", "memory `limit` of all models, such as 16GB (default all)")
	f.StringVar(&o.keepAlive, "keep-alive", "5m", "idle `time` before unloading; negative: until needed")
	f.IntVar(&o.context, "context", 0, "KV cache size of a model in tokens (default by memory)")
	f.StringVar(&o.cacheSize, "cache-size", "", "prefix cache in `bytes` per model; 0: off (default by memory)")
	f.StringVar(&o.cacheDir, "cache-dir", "", "`folder` of the prefix cache on disk (see \"cache warm\")")
	f.BoolVar(&o.shareCache, "share-cache", false, "let API keys reuse each other's cached prompts")
	f.StringVar(&o.cacheDisk, "cache-disk", "", "prefix cache limit on disk in `bytes` (default 16GB)")
	f.IntVar(&o.parallel, "num-parallel", 0, "running requests per model (default 32)")
	f.IntVar(&o.queue, "queue", 0, "waiting requests per model before rejection (default 512)")
	f.DurationVar(&o.maxGap, "max-gap", 0, "longest `time` between tokens during prefill (default 150ms)")
	f.StringVar(&o.draft, "draft", "auto", "default draft depth: a number, auto or off (no draft model)")
	f.DurationVar(&o.grace, "grace", 10*time.Second, "`time` to finish running requests on shutdown")
	f.BoolVar(&o.distributed, "distributed", false, "divide NAME over the ranks of a launcher")
	f.BoolVar(&o.yes, "yes", false, "import or pull missing models without asking")
	f.BoolVar(&o.float32, "float32", false, "compute in float32")
	f.BoolVar(&o.dryRun, "dry-run", false, "print each rank's share of NAME, and stop")
	f.BoolVar(&o.json, "json", false, "print JSON, with --dry-run")
	o.workers.add(c)
	o.way.add(c)
	o.kv.Add(c)
	o.cpu.Add(c)
	return c
}

type serveOptions struct {
	accessFlags
	registryFlags
	models, context int
	memory          string
	keepAlive       string
	cacheSize       string
	cacheDir        string
	cacheDisk       string
	shareCache      bool
	parallel, queue int
	maxGap          time.Duration
	draft           string
	grace           time.Duration
	float32, yes    bool
	distributed     bool
	dryRun, json    bool
	workers         workersFlag
	way             parallelFlags
	kv              engines.KVFlag
	cpu             engines.CPUFlags
}

func serve(a *cli.App, c *cobra.Command, names []string, o serveOptions) error {
	ctx := c.Context()
	opts, err := o.server()
	if err != nil {
		return err
	}
	at, err := o.accessFlags.set(a, &opts)
	if err == nil {
		err = o.checkParallel(names)
	}
	if err != nil {
		return err
	}
	if len(o.workers.list) > 0 {
		cli.NoteMode(a, o.workers.token.file)
	}
	var group ranks.Launched
	if o.distributed {
		if len(o.workers.list) > 0 {
			return cli.Usagef("--distributed and --workers cannot be combined")
		}
		if len(names) != 1 {
			return cli.Usagef("--distributed serves one NAME over all ranks, %d are given", len(names))
		}
		if group, err = readLauncher(); err != nil {
			return err
		}
	}
	if opts.Store, err = a.OpenStore(); err != nil {
		return err
	}
	stored, err := serveNames(ctx, a, names, opts.Store, o.yes)
	if err != nil {
		return err
	}
	if o.dryRun {
		return dryRun(ctx, a, opts.Store, stored, group, o)
	}
	if group.Rank > 0 {
		return follow(ctx, a, group, opts.Store, stored[0], o)
	}
	if _, err := opts.Store.Secret(ctx); err != nil {
		a.Note("note: `ingot run`, `ps`, `stop` and `launch` cannot verify that this server is yours: %v", err)
	}
	if opts.Clock, err = cli.Clock(""); err != nil {
		return err
	}
	if opts.Load, err = loader(a, o); err != nil {
		return err
	}
	if opts.Parallel, opts.Link, err = o.way.read(); err != nil {
		return err
	}
	if workers := len(o.workers.list); workers > 0 {
		opts.Ranks, opts.Regroups = func(*store.Entry) int { return workers + 1 }, true
	}
	if o.distributed {
		if err := distribute(ctx, &opts, group, stored[0]); err != nil {
			return err
		}
	}
	opts.Log = a.Note
	listener, err := net.Listen("tcp", at.Listen())
	if err != nil {
		return listenError(ctx, at, err)
	}
	defer listener.Close()
	if _, err := engines.Need(ctx, a); err != nil { // otherwise each model's process would fail on its own
		return err
	}
	s := all.New(opts)
	defer s.Close()
	at.Port = listener.Addr().(*net.TCPAddr).Port // port 0 means any free port
	a.Note("listening on %s", at.URL())
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	if o.distributed {
		go func() {
			if err := loadNow(ctx, s, stored[0]); err != nil {
				done <- err
				return
			}
			a.Note("%s runs on %d ranks", stored[0], group.Size)
		}()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	a.Note("stopping")
	grace, cancel := context.WithTimeout(context.Background(), o.grace)
	defer cancel()
	s.Shutdown(grace)
	return nil
}

// serveNames makes sure that the store has models. It returns their names there.
func serveNames(ctx context.Context, a *cli.App, names []string, st *store.Store, yes bool) (all []string, err error) {
	for _, arg := range names {
		stored, err := models.Ensure(ctx, a, arg, yes, mlx.Available)
		if err != nil {
			return nil, err
		}
		name, err := models.ParseName(stored)
		if err == nil {
			_, err = st.ResolveRaw(ctx, name)
		}
		if err != nil {
			return nil, err
		}
		if stored != arg {
			a.Note("%s is served as %s", arg, stored)
		}
		all = append(all, stored)
	}
	return all, nil
}

// server converts the flags to the server's options.
func (o serveOptions) server() (server.Options, error) {
	s := server.Options{
		Version: cli.Version, Models: o.models, Context: o.context, CacheSize: -1, Float32: o.float32,
		ShareCache: o.shareCache,
	}
	for _, n := range []struct {
		flag  string
		value int
	}{{"models", o.models}, {"context", o.context}, {"num-parallel", o.parallel}, {"queue", o.queue}} {
		if n.value < 0 {
			return s, cli.Usagef("--%s %d must not be negative", n.flag, n.value)
		}
	}
	setting, err := (&transfer.SettingFlags{}).Setting()
	if err != nil {
		return s, err
	}
	s.RegistrySetting = setting
	if s.InsecureRegistries, s.PrivateRegistries, err = o.registries(); err != nil {
		return s, err
	}
	if s.Draft, err = runtime.ParseDraft(o.draft); err != nil {
		return s, cli.Usagef("--draft: %v", err)
	}
	if s.KV, err = o.kv.Value(); err != nil {
		return s, err
	}
	if s.KeepAlive, err = params.ParseKeepAlive(o.keepAlive); err != nil {
		return s, cli.Usagef("--keep-alive: %v", err)
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
		if *b.to, err = bytesize.Parse(b.text); err != nil {
			return s, cli.Usagef("--%s: %v", b.flag, err)
		}
	}
	_, err = o.runnerFlags()
	return s, err
}

// runnerFlags returns the arguments of every model's process.
func (o serveOptions) runnerFlags() ([]string, error) {
	cpu, err := o.cpu.Options()
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
	cacheDir, err := servedPrefixes(o.cacheDir)
	if err != nil {
		return nil, fmt.Errorf("--cache-dir: %w", err)
	}
	add("cache-dir", cacheDir, cacheDir != "")
	if o.cacheDisk != "" {
		n, err := bytesize.Parse(o.cacheDisk)
		if err != nil {
			return nil, cli.Usagef("--cache-disk: %v", err)
		}
		add("cache-disk", strconv.FormatInt(n, 10), true)
	}
	add("draft", o.draft, o.draft != "auto")
	add("num-parallel", strconv.Itoa(o.parallel), o.parallel > 0)
	add("queue", strconv.Itoa(o.queue), o.queue > 0)
	if o.maxGap < 0 {
		return nil, cli.Usagef("--max-gap %v must not be negative", o.maxGap)
	}
	add("max-gap", o.maxGap.String(), o.maxGap > 0)
	kv, err := o.kv.Value()
	if err != nil {
		return nil, err
	}
	add("kv-type", string(kv), kv != runtime.KVPlain)
	if o.float32 {
		args = append(args, "--float32")
	}
	workers, err := o.workers.args()
	return slices.Concat(args, workers, o.way.args()), err
}

// loader returns a function that starts a child process of this program for a model.
func loader(a *cli.App, o serveOptions) (loadFunc, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's executable to run models: %w", err)
	}
	flags, err := o.runnerFlags()
	if err != nil {
		return nil, err
	}
	environ := child.Environment(child.Model)
	return func(ctx context.Context, child server.Child, loaded func(float64)) (pool.Model, error) {
		command := append([]string{program, "runner", child.Name,
			"--cache-size", strconv.FormatInt(child.PrefixCache, 10), "--memory", strconv.FormatInt(child.Memory, 10)}, flags...)
		if o.distributed && child.Ranks > 1 {
			command = append(command, "--distributed")
		}
		options := runner.Options{Command: command, Env: environ, Loaded: loaded, Stderr: a.ChildErr()}
		model, err := runner.Start(ctx, options)
		if err != nil {
			return nil, err // a nil *runner.Model would be a non-nil interface
		}
		return model, nil
	}, nil
}

type loadFunc = func(context.Context, server.Child, func(float64)) (pool.Model, error)
