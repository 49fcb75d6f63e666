package transfer

import (
	"cmp"
	"context"
	"os"
	"sync"

	"github.com/ingotml/ingot/cmd/cli"
	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/internal/usercache"
	"github.com/ingotml/ingot/registry/hub"
	"github.com/ingotml/ingot/safetensors"
	"github.com/spf13/pflag"
)

// HubFlags are the flags of commands that make images of a hub's repositories.
type HubFlags struct {
	keep, verify, Strict bool
	Wait                 SettingFlags
}

// Add adds the flags.
func (h *HubFlags) Add(f *pflag.FlagSet) {
	f.BoolVar(&h.keep, "keep-source", false, "store the hub's files in its cache, HF_HUB_CACHE")
	f.BoolVar(&h.verify, "verify-source", false, "read whole files of a hub, to check their SHA-256")
}

// hubRemote opens checkpoints of a hub for package convert.
type hubRemote struct{ client func() (*hub.Client, error) }

func (hubRemote) Names(value string) bool { return hub.IsName(value) }

func (h hubRemote) Open(ctx context.Context, value string) (safetensors.Folder, error) {
	name, err := hub.ParseName(value)
	if err != nil {
		return nil, err
	}
	client, err := h.client()
	if err != nil {
		return nil, err
	}
	folder, err := client.Open(ctx, name)
	if err != nil {
		return nil, err // not folder, which would be an interface that is not nil
	}
	return folder, nil
}

// Hub returns what opens checkpoints of a hub. memory is the limit of the whole command.
func Hub(a *cli.App, o HubFlags, memory int64) convert.Remote {
	return hubRemote{sync.OnceValues(func() (*hub.Client, error) { return HubClient(a, o, memory) })}
}

// HubClient returns a client with the settings of the environment. memory is the limit of the whole command.
func HubClient(a *cli.App, o HubFlags, memory int64) (*hub.Client, error) {
	opts, err := hub.Environment(os.Getenv)
	if err != nil {
		return nil, err
	}
	given, err := o.Wait.given()
	if err != nil {
		return nil, err
	}
	if opts.Setting, err = o.Wait.Setting(); err != nil {
		return nil, err
	}
	opts.Stall = cmp.Or(given.Timeout, opts.Stall) // a flag, the environment, the file
	opts.Keep, opts.Verify, opts.Strict = o.keep, o.verify, o.Strict
	opts.Memory = min(max(memory/aheadShare, MinAhead), maxAhead)
	opts.UserAgent = "ingot/" + cli.Version
	opts.Verified = usercache.Dir("verified")
	opts.Notice = func(text string) { a.Note("%s", text) }
	return hub.New(opts), nil
}

// Memory for what is read ahead, of the command's.
const (
	MinAhead   = 4 << 20
	maxAhead   = 64 << 20
	aheadShare = 8
)
